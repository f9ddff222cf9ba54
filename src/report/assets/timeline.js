// The work of one step on a time axis: device work by kind, and the calls of the busiest threads.
const laneShade = {compute: "good", communication: "communication", memcpy: "data", memset: "checkpoint", host: "accent"};
const shortKernel = name => name.replace(/^void /, "").replace(/\(anonymous namespace\)::|at::native::/g, "").slice(0, 160);

const timelineSection = ({step_timeline: steps}) => {
  if (!steps) return null;
  const row = 18;
  const canvas = h("canvas", {class: "lanes", role: "img", tabindex: "0", "aria-label": "timeline of one step"});
  const idle = "Drag to zoom, double-click to see all. Point at a bar to read its name.";
  const line = h("p", {class: "note after"}, idle);
  let [low, high] = [0, steps.seconds];
  let drag = null;
  const left = 110;
  const width = () => canvas.clientWidth - left;
  const x = time => left + (time - low) / (high - low) * width();
  const timeAt = position => low + (Math.max(left, position) - left) / width() * (high - low);
  const draw = () => {
    const ratio = devicePixelRatio || 1;
    canvas.style.height = steps.lanes.length * row + 22 + "px";
    [canvas.width, canvas.height] = [canvas.clientWidth * ratio, canvas.clientHeight * ratio];
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = color("soft");
    steps.lanes.forEach((lane, i) => context.fillText(lane.name, 0, i * row + 13, left - 8));
    const step = timeSteps.concat([1e-6, 1e-5, 1e-4, 2e-5, 2e-4, 5e-6, 5e-5, 5e-4, 0.002, 0.005, 0.02, 0.05, 0.2, 0.5]).sort((a, b) => a - b).find(one => width() / ((high - low) / one) > 90);
    for (let i = Math.ceil(low / step); step && i * step <= high; ++i) {
      context.fillStyle = color("line");
      context.fillRect(Math.round(x(i * step)), 0, 1, steps.lanes.length * row);
      context.fillStyle = color("soft");
      context.fillText(duration(i * step), Math.min(x(i * step) + 3, canvas.clientWidth - 60), steps.lanes.length * row + 15);
    }
    steps.lanes.forEach((lane, i) => {
      context.fillStyle = color(laneShade[lane.kind] || "other");
      for (const [start, seconds] of lane.spans) {
        const [from, to] = [Math.max(left, x(start)), Math.min(canvas.clientWidth, x(start + seconds))];
        if (to > left && from < canvas.clientWidth) context.fillRect(from, i * row + 2, Math.max(0.6, to - from - (to - from > 3 ? 1 : 0)), row - 4);
      }
    });
    if (!drag) return;
    context.globalAlpha = 0.2;
    context.fillRect(Math.min(...drag), 0, Math.abs(drag[1] - drag[0]), steps.lanes.length * row);
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
    if (drag && Math.abs(drag[1] - drag[0]) > 4) [low, high] = [timeAt(Math.min(...drag)), timeAt(Math.max(...drag))];
    drag = null;
    draw();
  };
  canvas.addEventListener("mouseup", release);
  canvas.addEventListener("mouseleave", () => { if (drag) release(); line.textContent = idle; });
  canvas.addEventListener("dblclick", () => { [low, high] = [0, steps.seconds]; draw(); });
  redraws.add(draw);
  new ResizeObserver(draw).observe(canvas);
  return section("Timeline of one step", (steps.step ? steps.step + ", the step of median length: " : "All of the trace: ") + duration(steps.seconds) + "." +
    (steps.omitted ? ` ${whole(steps.omitted)} shorter bars are omitted.` : ""), canvas, line);
};
