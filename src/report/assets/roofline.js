// The roofline: how fast each matmul ran against what compute and memory bandwidth allow for it.
const numbered = 8;
const intensity = dot => dot.flops / dot.bytes;
const rate = dot => dot.flops / dot.seconds;
const shapeText = shape => {
  const tensors = (shape || "").split(" ").map(one => one.replace(/^\[|\]$/g, "").replaceAll(",", "×"));
  return tensors.slice(0, 3).join(" · ") + (tensors.length > 3 ? " · …" : "");
};

const rooflineSection = ({profile, run, dtypes}) => {
  const title = "Roofline of the matmuls";
  const device = run.device || {};
  const bandwidth = device.memory_bytes_per_second;
  const peaks = peakGroups(device);
  const dots = ((profile || {}).matmuls || []).filter(row => row.flops > 0 && row.bytes > 0 && row.seconds > 0).sort((a, b) => b.seconds - a.seconds);
  if (!dots.length) return half(section(title, null, missing(profile
    ? profile.on_device ? "The profiles of this run were taken on the host, which does not see how long matmuls take on a device."
      : "The profiled step holds no matmul with its shapes." : "No profiled step in this run: shapes and times of single matmuls are not known.")));
  const used = [...dtypes].sort((a, b) => b.flops - a.flops).find(row => (device.peak_flops_per_second || {})[row.name]);
  const roof = dot => used ? Math.min(device.peak_flops_per_second[used.name], bandwidth ? bandwidth * intensity(dot) : Infinity) : null;
  const holder = h("div", {class: "plot"});
  const draw = () => holder.replaceChildren(rooflinePicture(dots, peaks, bandwidth, holder.clientWidth || 560));
  new ResizeObserver(draw).observe(holder);
  return section(title, "Each dot is one shape of matmul, its size the time spent in it. Under the slope a matmul waits for memory, under a flat roof it is bound by compute; far below both it is too small or has an odd shape." +
    (known(bandwidth) ? "" : " The memory bandwidth of this device is not known, so there is no slope."),
    h("div", {class: "columns"}, holder, table([["", ""], ["matmul", ""], ["time", "r"], ["speed", "r"], [used ? `of ${used.name} roof` : "", "r"]],
      dots.slice(0, numbered).map((dot, i) => ({cells: [h("span", {class: "n dot"}, String(i + 1)),
        h("span", {}, h("code", {}, breakable(shortOp(dot.name))), dot.backward ? h("span", {class: "soft"}, " backward") : null, h("small", {}, shapeText(dot.shape))),
        duration(dot.seconds), unit(rate(dot), "FLOP/s"), used ? percent(rate(dot) / roof(dot)) : ""]})), true)));
};

// The first free position next to a dot, so that numbers do not overlap.
const freePlace = (x, y, away, taken) => {
  for (const distance of [0, away, 1.8 * away, 2.8 * away]) {
    for (let turn = 0; turn < (distance ? 12 : 1); ++turn) {
      const [a, b] = [x + distance * Math.cos(turn * Math.PI / 6), y - distance * Math.sin(turn * Math.PI / 6)];
      if (taken.every(([p, q]) => Math.hypot(a - p, b - q) > 17)) return [a, b];
    }
  }
  return [x, y];
};

const decadeTicks = (low, high) => {
  const decades = [];
  for (let power = Math.floor(low); power <= high; ++power) decades.push(power);
  const steps = high - low < 2.5 ? [1, 2, 5] : [1];
  return decades.flatMap(power => steps.map(step => step * 10 ** power)).filter(value => Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9);
};

const rooflinePicture = (dots, peaks, bandwidth, width) => {
  const height = Math.max(280, Math.min(400, width * 0.62));
  const edge = {left: 84, right: 16, top: 16, bottom: 44};
  const top = Math.max(...peaks.map(peak => peak.rate), ...dots.map(rate));
  const xs = dots.map(intensity).concat(bandwidth ? peaks.map(peak => peak.rate / bandwidth) : []);
  const x0 = Math.log10(Math.min(...xs)) - 0.3, x1 = Math.log10(Math.max(...xs)) + 0.4;
  const y1 = Math.log10(top) + 0.2, y0 = Math.min(Math.log10(Math.min(...dots.map(rate))) - 0.25, y1 - 1.5);
  const x = value => edge.left + (Math.log10(value) - x0) / (x1 - x0) * (width - edge.left - edge.right);
  const y = value => height - edge.bottom - (Math.log10(value) - y0) / (y1 - y0) * (height - edge.top - edge.bottom);
  const [right, floor] = [width - edge.right, height - edge.bottom];
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "roofline plot"});
  const round = text => text.replace(/\.0+(?= )/, "");
  for (const value of decadeTicks(y0, y1)) picture.append(svg("line", {class: "grid", x1: edge.left, x2: right, y1: y(value), y2: y(value)}),
    svg("text", {x: edge.left - 8, y: y(value) + 4, "text-anchor": "end"}, round(unit(value, "FLOP/s"))));
  for (const value of decadeTicks(x0, x1)) picture.append(svg("line", {class: "grid", x1: x(value), x2: x(value), y1: edge.top, y2: floor}),
    svg("text", {x: x(value), y: floor + 17, "text-anchor": "middle"}, value < 1 ? String(+value.toPrecision(1)) : whole(value)));
  picture.append(svg("text", {x: (edge.left + right) / 2, y: height - 6, "text-anchor": "middle"}, "FLOPs for each byte of memory traffic"));
  if (bandwidth && peaks.length) {
    const highest = peaks[0].rate;
    const from = Math.max(10 ** x0, 10 ** y0 / bandwidth), ridge = highest / bandwidth;
    const [ax, ay, bx, by] = [x(from), y(from * bandwidth), x(ridge), y(highest)];
    picture.append(svg("line", {class: "slope", x1: ax, y1: ay, x2: bx, y2: by}));
    const [mx, my] = [ax + 0.45 * (bx - ax), ay + 0.45 * (by - ay)];
    picture.append(svg("text", {class: "slope-name", x: mx, y: my - 7, "text-anchor": "middle", transform: `rotate(${Math.atan2(by - ay, bx - ax) * 180 / Math.PI} ${mx} ${my})`},
      "memory " + unit(bandwidth, "B/s")));
  }
  let above = Infinity;
  for (const {rate: peak, dtypes} of peaks) {
    const from = bandwidth ? Math.max(x(peak / bandwidth), edge.left) : edge.left;
    const under = y(peak) - above < 15 && above !== Infinity;
    picture.append(svg("line", {class: "roof", x1: from, x2: right, y1: y(peak), y2: y(peak)}),
      svg("text", {class: "strong", x: right, y: y(peak) + (under ? 14 : -5), "text-anchor": "end"}, `${dtypes.length > 20 ? dtypes.slice(0, 18) + "…" : dtypes} peak ${unit(peak, "FLOP/s")}`));
    above = y(peak);
  }
  const longest = dots[0].seconds;
  const radius = dot => 3 + 9 * Math.sqrt(dot.seconds / longest);
  for (const dot of dots) picture.append(svg("circle", {class: "dot", cx: x(intensity(dot)), cy: y(rate(dot)), r: radius(dot)},
    svg("title", {}, `${shortOp(dot.name)}${dot.backward ? ", backward" : ""}, ${shapeText(dot.shape)}: ${unit(rate(dot), "FLOP/s")}, ${fixed(intensity(dot), 1)} FLOPs per byte, ${duration(dot.seconds)} in ${whole(dot.calls)} calls`)));
  const taken = [];
  dots.slice(0, numbered).forEach((dot, i) => {
    const [cx, cy] = [x(intensity(dot)), y(rate(dot))];
    const [a, b] = freePlace(cx, cy, 22, taken);
    taken.push([a, b]);
    if (Math.hypot(a - cx, b - cy) > 1) picture.append(svg("line", {class: "lead-line", x1: cx, y1: cy, x2: a, y2: b}));
    picture.append(svg("circle", {class: "label", cx: a, cy: b, r: 8}), svg("text", {class: "number", x: a, y: b + 4, "text-anchor": "middle"}, String(i + 1)));
  });
  return picture;
};
