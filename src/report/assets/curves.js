// Curves over the run: the mean of each bucket of steps as a line, its lowest and highest value as a band.
// Its legend sets styles in markup, which the policy of the page forbids; charts have their own.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter(plugin => plugin !== Dygraph.Plugins.Legend);
const charts = [];
let onZoom = null;  // called after another part of the run was chosen
let axis = "step";
let window_ = null;
// Functions that draw again in other colors.
const redraws = new Set();
const forgetCharts = () => {
  for (const {graph} of charts) graph.destroy();
  charts.length = 0;
  onZoom = null;
  redraws.clear();
  axis = kept("axis") === "time" ? "time" : "step";
  const [low, high] = kept("zoom").split(",").map(Number);
  window_ = low < high ? [low, high] : null;
};

// On an axis, ticks are round: fewer digits do.
const onAxis = {
  // As many digits as the tick has: 1.5 % is not 2 %.
  ratio: value => Number((100 * value).toPrecision(6)).toLocaleString("en-US", {maximumFractionDigits: 3}) + " %",
  bytes: value => bytes(value).replace(".0 ", " "),
  seconds: value => duration(value).replace(/\.0+ /, " "),
  "per second": value => si(value).replace(/\.0+(?=$| )/, ""),
};
const shown = {
  "": value => value.toLocaleString("en-US", {maximumSignificantDigits: 4}),
  ratio: percent,
  bytes,
  seconds: duration,
  "per second": value => value < 100 ? fixed(value, 2) : whole(value),
  "TFLOP/s": value => unit(value * 1e12, "FLOP/s"),
};
onAxis["TFLOP/s"] = value => shown["TFLOP/s"](value).replace(/\.0+(?= )/, "");
const curveNames = {mfu: "MFU", hfu: "HFU", tokens_per_second: "tokens/s", samples_per_second: "samples/s",
  step_seconds: "step time", loss: "loss", tflops_per_device: "model FLOP/s", "memory_bytes.rss": "process",
  "memory_bytes.device": "device, allocated", "memory_bytes.device_reserved": "device, reserved"};
const curveColours = {hfu: "second", "memory_bytes.device": "second", "memory_bytes.device_reserved": "good"};
const curveColor = curve => curve.field.startsWith("phases.") ? curve.field.slice(7) : curveColours[curve.field] || "accent";

const place = (timeline, i) => axis === "step" ? timeline.step[i] : (timeline.time[i] - timeline.time[0]);
// Curves without extremes are parts of a whole: they are stacked.
const stacks = curves => !curves[0].low;
// From the lowest to the highest value, or from the 5th to the 95th percentile if it is known.
const bandOf = (curve, i) => curve.p5 && known(curve.p5[i]) && known(curve.mean[i])
  ? [Math.min(curve.mean[i], Math.max(curve.low[i], curve.p5[i])), curve.mean[i], Math.max(curve.mean[i], Math.min(curve.high[i], curve.p95[i]))] : [curve.low[i], curve.mean[i], curve.high[i]];
const rowsOf = (timeline, curves) => timeline.step.map((_, i) =>
  [place(timeline, i), ...curves.map(curve => stacks(curves) ? curve.mean[i] : bandOf(curve, i))]);
const axisText = value => axis === "step" ? Number.isInteger(value) ? whole(value) : "" : duration(value).replace(/\.0+ | 0+ (s|min)$/, " ");
// Time is counted in sixties.
const timeSteps = [0.001, 0.01, 0.1, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200].concat([1, 2, 5, 10, 20, 50, 100, 200].map(days => 86400 * days));
const ticks = (low, high, pixels, options, ...more) => {
  if (axis === "step") return Dygraph.numericLinearTicks(low, high, pixels, options, ...more);
  const step = timeSteps.find(one => pixels / ((high - low) / one) > 90) || timeSteps.at(-1);
  const marks = [];
  for (let i = Math.ceil(low / step); i * step <= high; ++i) marks.push({v: i * step, label: axisText(i * step)});
  return marks;
};
const axisName = () => axis === "step" ? "step" : "time since the first step";
const inWindow = (timeline, i) => !window_ || (place(timeline, i) >= window_[0] && place(timeline, i) <= window_[1]);

// Of what can be seen, or of the bucket pointed at.
const rangeOf = (timeline, curve, i) => {
  if (!curve.low) return [null, null];
  if (i !== null) return [curve.low[i], curve.high[i]];
  let [low, high] = [Infinity, -Infinity];
  curve.mean.forEach((mean, j) => {
    if (!known(mean) || !inWindow(timeline, j)) return;
    low = Math.min(low, curve.low[j]);
    high = Math.max(high, curve.high[j]);
  });
  return [low, high];
};
const fillLegend = ({legend, title, timeline, curves}, i) => {
  legend.replaceChildren(h("h3", {}, title));
  for (const curve of [...curves].reverse()) {
    const format = shown[curve.unit] || si;
    const [low, high] = rangeOf(timeline, curve, i);
    const item = h("span", {title: curve.help});
    if (curves.length > 1) item.append(h("i", {style: {background: `var(--${curveColor(curve)})`}}), curveNames[curve.field] || words(curve.field.replace(/^phases\./, "")), " ");
    if (i !== null && known(curve.mean[i])) item.append(h("b", {}, format(curve.mean[i])), " ");
    if (i !== null && !known(curve.mean[i])) item.append("n/a");
    else if (known(low) && low < high) item.append((i === null ? "" : "(") + format(low) + " to " + format(high) + (i === null ? "" : ")"));
    else if (i === null && known(low) && low === high) item.append(format(low));
    legend.append(item);
  }
  if (i === null) return;
  const [from, to] = [timeline.step[i], timeline.last_step[i]];
  legend.append(h("span", {class: "at"}, (from === to ? "step " + whole(from) : "steps " + whole(from) + "–" + whole(to)) + " · " + date(timeline.time[i])));
};
// One look for all charts: what is pointed at in one is shown in the others.
const pointAt = (graph, row) => {
  for (const one of charts.filter(({overlay}) => !overlay)) {
    fillLegend(one, row);
    if (one.graph === graph) continue;
    row === null ? one.graph.clearSelection() : one.graph.setSelection(row);
  }
};

const look = curves => ({
  colors: curves.map(curve => color(curveColor(curve))),
  gridLineColor: color("line"), axisLineColor: color("line"),
});

const highestOf = ({timeline, curves, marks}, small) => {
  const plotHeight = (small ? 150 : 260) - 25;
  const room = 1.06 * plotHeight / (plotHeight - laneHeight * Math.min(6, lanesOf(marks)));
  return room * Math.max(...(stacks(curves) ? timeline.step.map((_, i) => curves.reduce((sum, curve) => sum + curve.mean[i], 0))
    : curves.flatMap(curve => curve.high.filter(known)))) || 1;
};
const lowestOf = ({curves}) => Math.min(0, ...(stacks(curves) ? [] : curves.flatMap(curve => curve.low.filter(known))));
// Shows a part of the run in all charts; null: all of it.
const setWindow = part => {
  window_ = part;
  keep("zoom", window_ ? window_.map(value => Number(value.toPrecision(8))).join(",") : "");
  for (const {graph} of charts) graph.updateOptions({dateWindow: window_});
  pointAt(null, null);
  if (onZoom) onZoom();
};
// Plus and minus zoom, arrows move, Escape shows all: calls `set` with the part to show, null for all.
const windowKeys = (event, [low, high], [first, last], set) => {
  const [middle, width] = [(low + high) / 2, high - low];
  const show = (center, size) => {
    const from = Math.max(first, Math.min(center - size / 2, last - size));
    set(size >= last - first ? null : [from, from + size]);
  };
  const moves = {"+": () => show(middle, width / 2), "-": () => show(middle, width * 2), ArrowLeft: () => show(middle - width / 4, width),
    ArrowRight: () => show(middle + width / 4, width), Escape: () => set(null)};
  if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  moves[event.key]();
};
const moveWindow = (event, graph) => windowKeys(event, graph.xAxisRange(), graph.xAxisExtremes(), setWindow);
// One chart: its nodes, draw() to show it once they are in the page, update() for newer data.
const chart = (timeline, curves, {title, small = false, last = false, marks = [], starts = [], events = []}) => {
  const legend = h("div", {class: "legend"});
  const element = h("div", {class: ["chart", small && "small", last && "last"].filter(Boolean).join(" "), role: "img", tabindex: "0", "aria-label": title + " over time: plus and minus zoom, arrows move"});
  const format = onAxis[curves[0].unit] || shown[curves[0].unit] || si;
  const one = {legend, title, timeline, curves, last, marks, starts, events};
  const draw = () => {
    fillLegend(one, null);
    one.graph = new Dygraph(element, rowsOf(timeline, curves), {
      ...look(curves), labels: ["x", ...curves.map(curve => curve.field)], ...(stacks(curves) ? {stackedGraph: true, fillAlpha: 0.8, strokeWidth: 0.5} : {customBars: true, fillAlpha: 0.14, strokeWidth: 1.6}),
      pointSize: 2.5, highlightCircleSize: 4, gridLineWidth: 1, axisLineWidth: 1, drawAxesAtZero: false,
      legend: "never", showLabelsOnHighlight: false, xRangePad: 4, rightGap: 8, drawHighlightPointCallback: drawPointer,
      valueRange: [lowestOf(one), highestOf(one, small)], dateWindow: window_, xlabel: last ? axisName() : undefined, xLabelHeight: 16,
      axes: {y: {labelsKMG2: curves[0].unit === "bytes", axisLabelWidth: 74, axisLabelFormatter: value => format(value), drawGrid: true, pixelsPerLabel: small ? 32 : 40},
             x: {axisLabelWidth: 84, axisLabelFormatter: axisText, drawGrid: false, pixelsPerLabel: 60, ticker: ticks}},
      underlayCallback: (canvas, area, self) => {
        canvas.save();
        drawStarts(one.timeline, one.starts, canvas, area, self);
        drawReach(one.timeline, one.curves, canvas, self);
        canvas.restore();
      },
      plugins: [{activate: () => ({didDrawChart: ({drawingContext, dygraph}) => {
        drawingContext.save();
        drawMarks(one.timeline, one.marks, drawingContext, dygraph.getArea(), dygraph);
        drawEvents(one.timeline, one.events, drawingContext, dygraph.getArea(), dygraph);
        drawingContext.restore();
      }})}],
      highlightCallback: (event, x, dots, row) => pointAt(one.graph, row),
      unhighlightCallback: () => pointAt(one.graph, null),
      zoomCallback: (low, high) => setWindow(one.graph.isZoomed("x") ? [low, high] : null),
    });
    element.addEventListener("keydown", event => moveWindow(event, one.graph));
    charts.push(one);
  };
  const update = (newer, newCurves, newMarks, newStarts, newEvents) => {
    Object.assign(one, {timeline: newer, curves: newCurves, marks: marks.length ? newMarks : [], starts: newStarts, events: newEvents});
    one.graph.updateOptions({file: rowsOf(newer, newCurves), valueRange: [lowestOf(one), highestOf(one, small)]});
    if (one.graph.getSelection() < 0) fillLegend(one, null);
  };
  return {nodes: [legend, element], draw, update, shape: [title, ...curves.map(curve => curve.field), Boolean(marks.length)]};
};

const redraw = () => {
  for (const {graph, curves} of charts) graph.updateOptions(look(curves));
  for (const draw of redraws) draw();
};
const setAxis = name => {
  axis = name;
  window_ = null;
  keep("axis", name === "step" ? "" : name);
  keep("zoom", "");
  for (const {graph, timeline, curves, last} of charts)
    graph.updateOptions({file: rowsOf(timeline, curves), dateWindow: null, xlabel: last ? axisName() : undefined});
  pointAt(null, null);
  if (onZoom) onZoom();
};

// The steps that the window shows: from the first to the last.
const stepsInWindow = timeline => {
  if (axis === "step") return [Math.floor(window_[0]), Math.ceil(window_[1])];
  const seen = timeline.step.map((_, i) => i).filter(i => inWindow(timeline, i));
  return seen.length ? [timeline.step[Math.max(0, seen[0] - 1)], timeline.last_step[Math.min(timeline.step.length - 1, seen.at(-1) + 1)]] : null;
};
// A timeline with the buckets of a part of it replaced by finer ones.
const refined = (timeline, fine) => {
  if (!fine || !fine.step.length) return timeline;
  const [first, last] = [fine.step[0], fine.last_step.at(-1)];
  const before = timeline.last_step.filter(step => step < first).length;
  const after = timeline.step.findIndex(step => step > last);
  const join = (coarse, finer) => [...coarse.slice(0, before), ...(finer || fine.step.map(() => null)), ...(after < 0 ? [] : coarse.slice(after))];
  const parts = ["mean", "p5", "p95", "low", "high"];
  return {...timeline, ...Object.fromEntries(["step", "last_step", "time"].map(name => [name, join(timeline[name], fine[name])])),
    curves: timeline.curves.map(curve => {
      const finer = fine.curves.find(one => one.field === curve.field) || {};
      return {...curve, ...Object.fromEntries(parts.filter(part => curve[part]).map(part => [part, join(curve[part], finer[part])]))};
    })};
};
const axisSwitch = () => {
  const box = h("div", {class: "switch", role: "group", "aria-label": "horizontal axis"});
  const show = () => box.replaceChildren(...["step", "time"].map(name =>
    h("button", {type: "button", "aria-pressed": String(axis === name), onclick: () => { setAxis(name); show(); }}, "by " + name)));
  show();
  return box;
};
