// Marks of a chart in addition to its curves: extremes, restarts, events, findings, and the pointer.
// From lowest to highest of each bucket: a single step that was far off shows even among a million.
const drawReach = (timeline, curves, canvas, graph) => {
  if (stacks(curves)) return;
  canvas.lineWidth = 1;
  canvas.globalAlpha = 0.55;
  for (const curve of curves) {
    canvas.strokeStyle = color(curveColor(curve));
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

const xOf = (timeline, graph) => step => {
  const i = timeline.last_step.findIndex(end => end >= step);
  return graph.toDomXCoord(place(timeline, i < 0 ? timeline.step.length - 1 : i));
};
// Where the run began again.
const drawStarts = (timeline, starts, canvas, area, graph) => {
  const at = xOf(timeline, graph);
  canvas.strokeStyle = color("soft");
  canvas.setLineDash([3, 4]);
  canvas.lineWidth = 1;
  for (const {step} of starts) {
    const x = Math.round(at(step)) + 0.5;
    if (x < area.x || x > area.x + area.w) continue;
    canvas.beginPath();
    canvas.moveTo(x, area.y);
    canvas.lineTo(x, area.y + area.h);
    canvas.stroke();
  }
  canvas.setLineDash([]);
};

// Evaluations, checkpoints, and other events: a tick at the bottom, in the color of its kind.
const eventShades = {evaluation: "evaluation", checkpoint: "checkpoint", generation: "second", compile: "optimizer", profile: "other"};
const eventPlaces = (events, at) => {
  const kinds = new Map();  // at each place: they stand side by side
  for (const {step, kind} of events) {
    const x = Math.round(at(step));
    kinds.set(x, (kinds.get(x) || new Set()).add(kind));
  }
  return [...kinds].flatMap(([x, some]) => [...some].map((kind, i) => [x + 3 * i, kind]));
};
const drawEvents = (timeline, events, canvas, area, graph) => {
  for (const [x, kind] of eventPlaces(events, xOf(timeline, graph))) {
    if (x < area.x || x > area.x + area.w) continue;
    canvas.fillStyle = color(eventShades[kind] || "other");
    canvas.fillRect(x - 1, area.y + area.h - 10, 2, 10);
  }
};

// Where a finding held: a line above the curves with its number and name; a light shade where it came or went.
const laneHeight = 20;
const lanesOf = marks => Math.max(0, ...marks.map(mark => mark.lane + 1));
const drawMarks = (timeline, marks, canvas, area, graph) => {
  const at = xOf(timeline, graph);
  for (const [i, mark] of marks.entries()) {
    const left = Math.max(area.x, at(mark.first_step));
    const right = Math.max(left + 2, Math.min(area.x + area.w, at(mark.last_step)));
    if (left > area.x + area.w || at(mark.last_step) < area.x) continue;
    const y = area.y + 10 + laneHeight * mark.lane;
    canvas.fillStyle = color("low");
    const isShaded = marks.slice(0, i).some(other => other.first_step <= mark.first_step && other.last_step >= mark.last_step);
    if (right - left < 0.9 * area.w && !isShaded) {
      canvas.globalAlpha = 0.08;
      canvas.fillRect(left, y, right - left, area.y + area.h - y);
      canvas.globalAlpha = 1;
    }
    canvas.fillRect(left, y - 1, right - left, 2);
    const name = words(mark.rule);
    canvas.textAlign = "left";
    canvas.font = "500 12px system-ui, sans-serif";
    const width = canvas.measureText(name).width;
    const from = left + (mark.number ? 19 : 4);
    if (from + width + 6 < right) {
      canvas.fillStyle = color("card");
      canvas.fillRect(from - 1, y - 8, width + 8, 16);
      canvas.fillStyle = color("low");
      canvas.fillText(name, from + 3, y + 4);
    }
    if (!mark.number) continue;
    canvas.fillStyle = color("low");
    canvas.beginPath();
    canvas.arc(left + 8, y, 8.5, 0, 2 * Math.PI);
    canvas.fill();
    canvas.textAlign = "center";
    canvas.font = "600 12px system-ui, sans-serif";
    canvas.fillStyle = color("card");
    canvas.fillText(String(mark.number), left + 8, y + 4);
  }
};
const drawPointer = (graph, name, canvas, x, y, shade, radius) => {
  const {y: top, h: height} = graph.getArea();
  canvas.fillStyle = color("soft");
  canvas.fillRect(Math.round(x), top, 1, height);
  canvas.fillStyle = shade;
  canvas.beginPath();
  canvas.arc(x, y, radius, 0, 2 * Math.PI);
  canvas.fill();
};
