// The roofline: how fast each matrix product ran against what compute and memory bandwidth allow for it.
const rooflineSection = ({survey, run}) => {
  const title = "Roofline of the matrix products";
  const peaks = Object.entries((run.device || {}).peak_flops_per_second || {});
  const points_ = ((survey || {}).matmuls || []).filter(row => row.flops > 0 && row.bytes > 0 && row.seconds > 0);
  if (!points_.length) return section(title, null, missing(survey
    ? survey.on_device ? "The surveys of this run were taken on the host, which does not see how long a device's products take."
      : "The surveyed step holds no matrix product with its shapes." : "No surveyed step in this run: shapes and times of single products are not known."));
  const note = "Each dot is one shape of product, its size the time spent in it. Dots under the slope wait for memory, dots under the flat roof are bound by compute.";
  const holder = h("div", {});
  const draw = () => holder.replaceChildren(rooflinePicture(points_, peaks, (run.device || {}).memory_bytes_per_second, holder.clientWidth || 560));
  new ResizeObserver(draw).observe(holder);
  return section(title, note, holder, known((run.device || {}).memory_bytes_per_second) ? null
    : missing("The memory bandwidth of this device is not known, so there is no slope."));
};

const rooflinePicture = (dots, peaks, bandwidth, width) => {
  const height = Math.max(260, Math.min(380, width * 0.6));
  const edge = {left: 58, right: 26, top: 14, bottom: 40};
  const intensity = dot => dot.flops / dot.bytes;
  const rate = dot => dot.flops / dot.seconds;
  const top = Math.max(...peaks.map(([, peak]) => peak), ...dots.map(rate));
  const xs = dots.map(intensity).concat(bandwidth ? peaks.map(([, peak]) => peak / bandwidth) : []);
  const x0 = Math.floor(Math.log10(Math.min(...xs)) - 0.2), x1 = Math.ceil(Math.log10(Math.max(...xs)) + 0.2);
  const y1 = Math.log10(top) + 0.25, y0 = Math.floor(Math.min(Math.log10(Math.min(...dots.map(rate))), y1 - 2));
  const x = value => edge.left + (Math.log10(value) - x0) / (x1 - x0) * (width - edge.left - edge.right);
  const y = value => height - edge.bottom - (Math.log10(value) - y0) / (y1 - y0) * (height - edge.top - edge.bottom);
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "roofline plot"});
  for (let power = y0; power <= y1; ++power) picture.append(
    svg("line", {class: "grid", x1: edge.left, x2: width - edge.right, y1: y(10 ** power), y2: y(10 ** power)}),
    svg("text", {x: edge.left - 8, y: y(10 ** power) + 4, "text-anchor": "end"}, si(10 ** power).replace(/\.0+(?=$| )/, "")));
  for (let power = x0; power <= x1; ++power) picture.append(
    svg("text", {x: x(10 ** power), y: height - edge.bottom + 18, "text-anchor": "middle"}, power < 0 ? String(10 ** power) : whole(10 ** power)));
  picture.append(svg("text", {x: width - edge.right, y: height - 6, "text-anchor": "end"}, "FLOPs a byte"), svg("text", {x: 4, y: 12}, "FLOP/s"));
  for (const [dtype, peak] of peaks) {
    const ridge = bandwidth ? peak / bandwidth : 10 ** x0;
    picture.append(svg("line", {x1: x(ridge), x2: width - edge.right, y1: y(peak), y2: y(peak), stroke: "var(--ink)", "stroke-width": 1.5}),
      svg("text", {class: "strong", x: width - edge.right, y: y(peak) - 5, "text-anchor": "end"}, dtype + " peak"));
  }
  if (bandwidth) {
    const ridge = Math.max(...peaks.map(([, peak]) => peak)) / bandwidth;
    const from = Math.max(10 ** x0, 10 ** y0 / bandwidth);
    picture.append(svg("line", {x1: x(from), x2: x(ridge), y1: y(from * bandwidth), y2: y(ridge * bandwidth), stroke: "var(--second)", "stroke-width": 1.5}));
  }
  const longest = Math.max(...dots.map(dot => dot.seconds));
  for (const dot of [...dots].sort((a, b) => b.seconds - a.seconds)) picture.append(svg("circle", {
    cx: x(intensity(dot)), cy: y(rate(dot)), r: 3 + 11 * Math.sqrt(dot.seconds / longest), fill: "var(--accent)", "fill-opacity": 0.45, stroke: "var(--accent)"},
    svg("title", {}, `${dot.name} ${dot.shape || ""}: ${unit(rate(dot), "FLOP/s")}, ${fixed(intensity(dot), 1)} FLOPs a byte, ${duration(dot.seconds)}`)));
  return picture;
};
