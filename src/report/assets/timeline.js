// The work of one step on a time axis: device work by kind and the calls of the busiest threads of a trace, or the operators of a profile.
const laneShade = {compute: "good", communication: "communication", memcpy: "data", memset: "checkpoint", host: "accent", operators: "backward", idle: "other"};
const shadeIn = (lane, name) => lane.kind === "phases" ? name : laneShade[lane.kind] || "other";
const shortKernel = name => shortOp(name).replace(/^void /, "").replace(/\(anonymous namespace\)::|at::native::/g, "").slice(0, 160);
const fineTicks = timeSteps.concat([1e-6, 1e-5, 1e-4, 2e-5, 2e-4, 5e-6, 5e-5, 5e-4, 0.002, 0.005, 0.02, 0.05, 0.2, 0.5]).sort((a, b) => a - b);

const timelineSection = ({step_timeline: steps}) => {
  if (!steps) return null;
  const row = 20;
  const canvas = h("canvas", {class: "lanes", role: "img", tabindex: "0", "aria-label": "timeline of one step: plus and minus zoom, arrows move"});
  const idle = "Drag to zoom, double-click to see all; with the focus: +, −, arrows, Escape. Point at a bar to read its name.";
  const line = h("p", {class: "note after"}, idle);
  const length = Math.max(steps.seconds, ...steps.lanes.map(({spans}) => spans.length ? spans.at(-1)[0] + spans.at(-1)[1] : 0));
  let [low, high] = [0, length];
  let drag = null;
  const left = 110;
  const width = () => canvas.clientWidth - left;
  const x = time => left + (time - low) / (high - low) * width();
  const timeAt = position => low + (Math.max(left, position) - left) / width() * (high - low);
  const drawTicks = context => {
    const step = fineTicks.find(one => width() / ((high - low) / one) > 90);
    for (let i = Math.ceil(low / step); step && i * step <= high; ++i) {
      context.fillStyle = color("line");
      context.fillRect(Math.round(x(i * step)), 0, 1, steps.lanes.length * row);
      context.fillStyle = color("soft");
      const label = onAxis.seconds(i * step);
      if (x(i * step) + 3 + context.measureText(label).width <= canvas.clientWidth) context.fillText(label, x(i * step) + 3, steps.lanes.length * row + 15);
    }
  };
  const drawLane = (context, lane, y) => {
    const shades = {};
    for (const [start, seconds, name] of lane.spans) {
      const [from, to] = [Math.max(left, x(start)), Math.min(canvas.clientWidth, x(start + seconds))];
      if (to <= left || from >= canvas.clientWidth) continue;
      const shade = shadeIn(lane, steps.names[name]);
      context.fillStyle = shades[shade] = shades[shade] || color(shade);
      context.fillRect(from, y + 2, Math.max(0.6, to - from - (to - from > 3 ? 1 : 0)), row - 4);
      const label = to - from > 40 ? visible(shortKernel(steps.names[name])) : "";
      if (!label || context.measureText(label).width > to - from - 8) continue;
      context.fillStyle = color("card");
      context.fillText(label, from + 4, y + 14);
    }
  };
  const draw = () => {
    const ratio = devicePixelRatio || 1;
    canvas.style.height = steps.lanes.length * row + 22 + "px";
    [canvas.width, canvas.height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio];
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = color("soft");
    steps.lanes.forEach((lane, i) => context.fillText(lane.name, 0, i * row + 14, left - 8));
    drawTicks(context);
    steps.lanes.forEach((lane, i) => drawLane(context, lane, i * row));
    if (!drag) return;
    context.globalAlpha = 0.2;
    context.fillStyle = color("accent");
    context.fillRect(Math.min(...drag), 0, Math.abs(drag[1] - drag[0]), steps.lanes.length * row);
  };
  const show = (from, to) => {
    const size = Math.min(length, to - from);
    low = Math.max(0, Math.min(from, length - size));
    high = low + size;
    draw();
  };
  const place = event => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const spanAt = (time, lane) => lane && lane.spans.find(([start, seconds]) => start <= time && time < Math.max(start + seconds, start + 2 * (high - low) / width()));
  canvas.addEventListener("mousedown", event => { drag = [place(event)[0], place(event)[0]]; });
  canvas.addEventListener("mousemove", event => {
    const [at, y] = place(event);
    if (drag) {
      drag[1] = at;
      draw();
    }
    const lane = steps.lanes[Math.floor(y / row)];
    const span = spanAt(timeAt(at), lane);
    line.textContent = span ? `${visible(shortKernel(steps.names[span[2]]))}: ${duration(span[1])}, begins at ${duration(span[0])}` : idle;
  });
  const release = () => {
    const chosen = drag;
    drag = null;
    chosen && Math.abs(chosen[1] - chosen[0]) > 4 ? show(timeAt(Math.min(...chosen)), timeAt(Math.max(...chosen))) : draw();
  };
  canvas.addEventListener("mouseup", release);
  canvas.addEventListener("mouseleave", () => { if (drag) release(); line.textContent = idle; });
  canvas.addEventListener("dblclick", () => show(0, length));
  canvas.addEventListener("keydown", event => windowKeys(event, [low, high], [0, length], part => show(...part || [0, length])));
  redraws.add(draw);
  new ResizeObserver(draw).observe(canvas);
  return section("Timeline of one step", steps.step + ": " + duration(steps.seconds) + "." + (steps.omitted ? ` ${whole(steps.omitted)} shorter bars are omitted.` : ""), canvas, line);
};
