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
const utilisation = has("hfu", "mfu");  // the last is drawn on top
const speed = has("tokens_per_second").concat(curve("tokens_per_second") ? [] : has("samples_per_second"));
const pace = has("step_seconds");
const memory = has("memory_bytes.device_reserved", "memory_bytes.device", "memory_bytes.rss");
if (timeline.step.length) {
  main.append(wide(h("section", {},
    h("div", {class: "bar-head"}, h("h2", {}, utilisation.length ? "MFU and throughput over time" : "Throughput over time"), axisSwitch()),
    ...picture(utilisation.length ? utilisation : has("tflops_per_device"), {first: true, marks: data.marks, label: "MFU over time"}),
    ...picture(speed, {small: true, label: "throughput over time"}),
    ...picture(pace, {small: true, label: "step time over time"}))));
} else {
  main.append(wide(section("MFU and throughput over time", null, missing("No train step is recorded yet."))));
}
main.append(...[findingsSection(data), waterfallSection(data), phasesSection(data), flopsSection(data), rooflineSection(data), ranksSection(data)].filter(Boolean));
if (memory.length) main.append(wide(section("Memory", "Resident memory of the process, and what the device's allocator holds.", ...picture(memory, {small: true, label: "memory over time"}))));
main.append(configurationSection(data));
for (const one of pictures) one.draw();
document.getElementById("foot").append("Written by flopmeter " + data.version + " on " + date(data.written_unix) + ". Charts by dygraphs.");

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
const fit = () => { for (const {graph} of charts) graph.resize(); };
addEventListener("beforeprint", fit);
addEventListener("afterprint", fit);
