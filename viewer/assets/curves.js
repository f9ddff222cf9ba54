// Curves over the run: the mean of each stretch of steps as a line, its lowest and highest value as a band.
const charts = [];
let axis = "step";
let window_ = null;

// On an axis, ticks are round: fewer digits do.
const onAxis = {
  ratio: value => fixed(100 * value, value && Math.abs(value) < 0.01 ? 1 : 0) + " %",
  bytes: value => bytes(value).replace(".0 ", " "),
  seconds: value => duration(value).replace(/\.0+ /, " "),
  "per second": value => si(value).replace(/\.0+(?=$| )/, ""),
};
const shown = {
  ratio: percent,
  bytes,
  seconds: duration,
  "per second": value => value < 100 ? fixed(value, 2) : whole(value),
  "TFLOP/s": value => unit(value * 1e12, "FLOP/s"),
};
const curveNames = {mfu: "MFU", hfu: "HFU", tokens_per_second: "tokens/s", samples_per_second: "samples/s",
  step_seconds: "step time", tflops_per_device: "model FLOP/s a device", "memory_bytes.rss": "process",
  "memory_bytes.device": "device, allocated", "memory_bytes.device_reserved": "device, reserved"};
const curveColours = {hfu: "second", "memory_bytes.device": "second", "memory_bytes.device_reserved": "good"};
const curveColour = curve => curveColours[curve.field] || "accent";

const place = (timeline, i) => axis === "step" ? timeline.step[i] : (timeline.time[i] - timeline.time[0]);
const rowsOf = (timeline, curves) => timeline.step.map((_, i) =>
  [place(timeline, i), ...curves.map(curve => [curve.low[i], curve.mean[i], curve.high[i]])]);
const axisText = value => axis === "step" ? whole(value) : duration(value);

const fillLegend = (element, timeline, curves, i, first) => {
  element.replaceChildren();
  const many = timeline.steps_per_stretch > 1;
  if (i !== null) {
    const [from, to] = [timeline.step[i], timeline.last_step[i]];
    element.append(h("span", {}, h("b", {}, from === to ? "step " + whole(from) : "steps " + whole(from) + "–" + whole(to)),
      " · " + date(timeline.time[i])));
  }
  for (const curve of [...curves].reverse()) {
    const format = shown[curve.unit] || si;
    const item = h("span", {title: curve.help}, h("i", {style: {background: `var(--${curveColour(curve)})`}}), curveNames[curve.field] || words(curve.field));
    if (i !== null && known(curve.mean[i])) {
      item.append(" ", h("b", {}, format(curve.mean[i])));
      if (curve.low[i] < curve.high[i]) item.append(" (" + format(curve.low[i]) + " to " + format(curve.high[i]) + ")");
    }
    element.append(item);
  }
  if (i === null && first) element.append(h("span", {class: "hint"}, many
    ? `line: mean of ${whole(timeline.steps_per_stretch)} steps, band: lowest to highest · drag to zoom, double-click to see all`
    : "drag to zoom, double-click to see all"));
};

// From lowest to highest of each stretch: a single step that was far off shows even among a million.
const drawReach = (timeline, curves, canvas, graph) => {
  canvas.lineWidth = 1;
  canvas.globalAlpha = 0.55;
  for (const curve of curves) {
    canvas.strokeStyle = colour(curveColour(curve));
    canvas.beginPath();
    timeline.step.forEach((_, i) => {
      if (!known(curve.mean[i]) || curve.low[i] === curve.high[i]) return;
      const x = graph.toDomXCoord(place(timeline, i));
      canvas.moveTo(x, graph.toDomYCoord(curve.low[i]));
      canvas.lineTo(x, graph.toDomYCoord(curve.high[i]));
    });
    canvas.stroke();
  }
  canvas.globalAlpha = 1;
};

// Where a finding held: a line above the curves that starts with its number; a light shade where it came or went.
const laneHeight = 18;
const lanesOf = marks => Math.max(0, ...marks.map(mark => mark.lane + 1));
const drawMarks = (timeline, marks, canvas, area, graph) => {
  const last = timeline.step.length - 1;
  const at = step => {
    const i = timeline.last_step.findIndex(end => end >= step);
    return graph.toDomXCoord(place(timeline, i < 0 ? last : i));
  };
  canvas.font = "600 12px system-ui, sans-serif";
  canvas.textAlign = "center";
  for (const mark of marks) {
    const left = Math.max(area.x, at(mark.first_step));
    const right = Math.max(left + 2, Math.min(area.x + area.w, at(mark.last_step)));
    if (left > area.x + area.w || at(mark.last_step) < area.x) continue;
    const y = area.y + 9 + laneHeight * mark.lane;
    canvas.fillStyle = colour("low");
    if (right - left < 0.9 * area.w) {
      canvas.globalAlpha = 0.08;
      canvas.fillRect(left, y, right - left, area.y + area.h - y);
      canvas.globalAlpha = 1;
    }
    canvas.fillRect(left, y - 1, right - left, 2);
    if (!mark.number) continue;
    canvas.beginPath();
    canvas.arc(left + 8, y, 8, 0, 2 * Math.PI);
    canvas.fill();
    canvas.fillStyle = colour("card");
    canvas.fillText(String(mark.number), left + 8, y + 4);
  }
};

const look = curves => ({
  colors: curves.map(curve => colour(curveColour(curve))),
  gridLineColor: colour("line"), axisLineColor: colour("line"),
});

const chart = (timeline, curves, {small = false, marks = [], first = false, label} = {}) => {
  const legend = h("div", {class: "legend"});
  const element = h("div", {class: small ? "chart small" : "chart", role: "img", "aria-label": label});
  const format = onAxis[curves[0].unit] || shown[curves[0].unit] || si;
  const room = 1.06 * 225 / (225 - laneHeight * Math.min(6, lanesOf(marks)));
  const highest = room * Math.max(...curves.flatMap(curve => curve.high.filter(known)));
  const draw = () => {
    fillLegend(legend, timeline, curves, null, first);
    const graph = new Dygraph(element, rowsOf(timeline, curves), {
      ...look(curves), labels: ["x", ...curves.map(curve => curve.field)], customBars: true, fillAlpha: 0.14,
      strokeWidth: 1.6, pointSize: 2.5, highlightCircleSize: 4, gridLineWidth: 1, axisLineWidth: 1, drawAxesAtZero: false,
      legend: "never", showLabelsOnHighlight: false, xRangePad: 4, rightGap: 8,
      valueRange: [0, highest || 1],
      axes: {y: {labelsKMG2: curves[0].unit === "bytes", axisLabelWidth: 74, axisLabelFormatter: value => format(value), drawGrid: true, pixelsPerLabel: small ? 30 : 36},
             x: {axisLabelWidth: 84, axisLabelFormatter: axisText, drawGrid: false, pixelsPerLabel: 55, ticker: Dygraph.numericLinearTicks}},
      underlayCallback: (canvas, area, self) => {
        canvas.save();
        drawReach(timeline, curves, canvas, self);
        canvas.restore();
      },
      plugins: [{activate: () => ({didDrawChart: ({drawingContext, dygraph}) => {
        drawingContext.save();
        drawMarks(timeline, marks, drawingContext, dygraph.getArea(), dygraph);
        drawingContext.restore();
      }})}],
      highlightCallback: (event, x, dots, row) => fillLegend(legend, timeline, curves, row),
      unhighlightCallback: () => fillLegend(legend, timeline, curves, null, first),
      zoomCallback: (low, high) => {
        window_ = graph.isZoomed("x") ? [low, high] : null;
        for (const other of charts) if (other.graph !== graph) other.graph.updateOptions({dateWindow: window_});
      },
    });
    charts.push({graph, timeline, curves, legend});
  };
  return {nodes: [legend, element], draw};
};

const redraw = () => { for (const {graph, curves} of charts) graph.updateOptions(look(curves)); };
const setAxis = name => {
  axis = name;
  window_ = null;
  for (const {graph, timeline, curves} of charts) graph.updateOptions({file: rowsOf(timeline, curves), dateWindow: null});
};
const axisSwitch = () => {
  const box = h("div", {class: "switch", role: "group", "aria-label": "horizontal axis"});
  const show = () => box.replaceChildren(...["step", "time"].map(name =>
    h("button", {type: "button", "aria-pressed": String(axis === name), onclick: () => { setAxis(name); show(); }}, "by " + name)));
  show();
  return box;
};
