// Puts the page together.
const data = JSON.parse(document.getElementById("data").textContent);
// A mark belongs to the finding of its rule; of those that hold at the same time each gets a lane.
data.marks.forEach((mark, i) => {
  mark.number = (data.findings || []).findIndex(finding => finding.rule === mark.rule) + 1;
  const taken = data.marks.slice(0, i).filter(other => other.first_step <= mark.last_step && other.last_step >= mark.first_step).map(other => other.lane);
  for (mark.lane = 0; taken.includes(mark.lane);) ++mark.lane;
});
showHead(data);
const {timeline} = data;
const curve = field => timeline.curves.find(one => one.field === field && one.mean.some(known));
const has = (...fields) => fields.map(curve).filter(Boolean);
const pictures = [];
const picture = (curves, options) => {
  if (!curves.length) return [];
  const made = chart(timeline, curves, options);
  pictures.push(made);
  return made.nodes;
};

const main = document.getElementById("page");
const utilization = has("hfu", "mfu");  // the last is drawn on top
const work = utilization.length ? utilization : has("tflops_per_device");
const speed = has("tokens_per_second").concat(curve("tokens_per_second") ? [] : has("samples_per_second"));
const pace = has("step_seconds");
const parts = data.phases.map(phase => curve("phases." + phase.name)).filter(Boolean).reverse();  // the first lies on the ground
const memory = has("memory_bytes.device_reserved", "memory_bytes.device", "memory_bytes.rss");
const starts = data.run.starts.slice(1).filter(({step}) => known(step));
const overTime = () => {
  if (!timeline.step.length) return section("Over time", null, missing("No train step is recorded yet."));
  const many = timeline.steps_per_bucket > 1;
  const hint = [many ? `Line: mean of ${whole(timeline.steps_per_bucket)} steps; band and strokes: lowest to highest.` : null,
    data.ranks.count > 1 && !many ? "Line: mean of the ranks; band and strokes: lowest to highest." : null,
    data.marks.length ? "Red lines: where a finding held." : null, starts.length ? "Dashed: the run began again." : null];
  return h("section", {},
    h("div", {class: "bar-head"}, h("h2", {}, work === utilization ? "MFU and throughput over time" : "Throughput over time"), axisSwitch()),
    h("p", {class: "note"}, hint.filter(Boolean).join(" "), h("span", {class: "hint"}, " Drag to zoom, double-click to see all.")),
    ...picture(work, {title: utilization.length > 1 ? "Share of peak" : utilization.length ? "MFU" : "Model FLOP/s per device", marks: data.marks, starts}),
    ...picture(speed, {title: speed.length && speed[0].field === "samples_per_second" ? "Samples per second" : "Tokens per second", small: true, starts}),
    ...picture(pace, {title: "Step time", small: true, last: !parts.length, starts}),
    ...picture(parts, {title: "Mean step by phase", small: true, last: true, starts}));
};
main.append(...[budgetSection(data), findingsSection(data), overTime(), h("div", {class: "pair"}, phasesSection(data), dtypesSection(data)),
  rooflineSection(data), operationsSection(data), ranksSection(data),
  memory.length ? section("Memory", null, ...picture(memory, {title: memory.length > 1 ? "Held by" : "Resident memory of the process", small: true, last: true, starts})) : null,
  configurationSection(data)].filter(Boolean));
for (const one of pictures) one.draw();
document.getElementById("foot").append("Written by flopmeter " + data.version + " on " + date(data.written_unix) + ". Charts by dygraphs.");

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

// Paper has its own width and is never dark, so charts are drawn for it.  A canvas of a new size prints empty: its image does not.
const forPaper = printing => {
  document.documentElement.classList.toggle("printing", printing);
  for (const {graph} of charts) {
    graph.updateOptions({pixelRatio: printing ? 3 : null}, true);
    graph.resize();
  }
  redraw();
  for (const image of document.querySelectorAll(".chart img")) image.remove();
  if (!printing) return;
  for (const canvas of document.querySelectorAll(".chart canvas"))
    canvas.after(h("img", {src: canvas.toDataURL(), alt: "", style: {position: "absolute", width: canvas.style.width, height: canvas.style.height}}));
};
addEventListener("beforeprint", () => forPaper(true));
addEventListener("afterprint", () => forPaper(false));
