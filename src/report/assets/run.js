// The view of one run, or of one rank of it.
const curveOf = timeline => field => timeline.curves.find(one => one.field === field && one.mean.some(known));

// A mark belongs to the finding of its rule; of those that hold at the same time each gets a lane.
const numberMarks = ({marks, findings}) => marks.forEach((mark, i) => {
  mark.number = (findings || []).findIndex(finding => finding.rule === mark.rule) + 1;
  const taken = marks.slice(0, i).filter(other => other.first_step <= mark.last_step && other.last_step >= mark.first_step).map(other => other.lane);
  for (mark.lane = 0; taken.includes(mark.lane);) ++mark.lane;
});

// The charts of a document: title, curves, and how they look.
const picturesOf = data => {
  const curve = curveOf(data.timeline);
  const has = (...fields) => fields.map(curve).filter(Boolean);
  // HFU only if it differs visibly; the last is drawn on top.
  const [mfu, hfu] = [curve("mfu"), curve("hfu")];
  const same = mfu && hfu && mfu.mean.every((value, i) => known(value) === known(hfu.mean[i]) && !(Math.abs(value - hfu.mean[i]) > 0.02 * value));
  const utilization = same ? [mfu] : has("hfu", "mfu");
  const work = utilization.length ? utilization : has("tflops_per_device");
  const speed = has("tokens_per_second").concat(curve("tokens_per_second") ? [] : has("samples_per_second"));
  const parts = data.phases.filter(phase => phase.share > 0).map(phase => curve("phases." + phase.name)).filter(Boolean).reverse();  // the first lies on the ground
  const memory = has("memory_bytes.device_reserved", "memory_bytes.device", "memory_bytes.rss");
  const overTime = [
    {curves: work, title: utilization.length > 1 ? "Share of peak" : utilization.length ? "MFU" : "Model FLOP/s per device", marks: data.marks},
    {curves: speed, title: (speed.length && speed[0].field === "samples_per_second" ? "Samples per second" : "Tokens per second") + (data.ranks.count > 1 ? " of one rank" : ""), small: true},
    {curves: has("step_seconds"), title: "Step time", small: true},
    {curves: has("loss"), title: "Loss", small: true},
    {curves: parts, title: "Mean step by phase", small: true},
  ].filter(({curves}) => curves.length);
  if (data.timeline.step.length < 2) return {overTime: [], memory: []};
  if (overTime.length) overTime.at(-1).last = true;
  return {overTime, memory: memory.length ? [{curves: memory, title: memory.length > 1 ? "Held by" : "Resident memory of the process", small: true, last: true}] : []};
};

// How many evaluations, checkpoints, and other events there are, by kind.
const eventKeys = ({events}) => [...new Set(events.map(event => event.kind))].map(kind =>
  h("span", {class: "event"}, h("i", {class: "key", style: {background: `var(--${eventShades[kind] || "other"})`}}), words(kind), ` (${whole(events.filter(event => event.kind === kind).length)})`));

const overTimeSection = (data, starts, charts) => {
  const {timeline, marks, ranks, headline} = data;
  if (!timeline.step.length) return section("Over time", null, missing("No train step is recorded yet."));
  if (timeline.step.length < 2) return section("Over time", null, missing("Only one step is recorded."));
  const many = timeline.steps_per_bucket > 1;
  const hint = [many ? `Line: mean of ${whole(timeline.steps_per_bucket)} steps; strokes: lowest to highest; band of the step time: 5th to 95th percentile.` : null,
    ranks.count > 1 && !many ? "Line: mean of the ranks; band and strokes: lowest to highest." : null,
    marks.length ? "Red lines: where a finding held." : null, starts.length ? "Dashed: the run began again." : null];
  return h("section", {},
    h("div", {class: "bar-head"}, h("h2", {}, known(headline.mfu) ? "MFU and throughput over time" : "Throughput over time"), axisSwitch()),
    h("p", {class: "note"}, hint.filter(Boolean).join(" "), h("span", {class: "hint"}, " Drag to zoom, double-click to see all; in a chart with the focus: +, −, arrows, Escape."), h("span", {id: "events"}, eventKeys(data))),
    ...charts.flatMap(one => one.nodes));
};

// The sections of the page. Each names the data that it shows: it is built again only if they change.
const sectionsOf = data => [
  ["budget", [data.budget, data.findings, data.what_ifs, data.headline.train_steps], () => budgetSection(data)],
  ["findings", [data.findings, data.marks], () => findingsSection(data)],
  ["charts"],
  ["phases", [data.phases, data.dtypes], () => h("div", {class: "pair"}, phasesSection(data), dtypesSection(data))],
  ["stages", [data.stages], () => stagesSection(data)],
  ["timeline", [data.step_timeline], () => timelineSection(data)],
  ["roofline", [data.profile], () => rooflineSection(data)],
  ["operations", [data.profile], () => operationsSection(data)],
  ["ranks", [data.ranks, data.rank_map], () => ranksSection(data)],
  ["memory"],
  ["configuration", [data.run, data.headline.train_steps, data.notes], () => configurationSection(data)],
];

const runView = path => {
  const page = document.getElementById("page");
  let drawn = null;  // the page as it is: charts, their shape, and sections
  let whole_ = null;  // the document without details
  let fine = null;    // curves of the part that the window shows
  const startsOf = data => data.run.starts.slice(1).filter(({step}) => known(step));
  const build = data => {
    forgetCharts();
    const starts = startsOf(data);
    const {overTime, memory} = picturesOf(data);
    const make = list => list.map(({curves, ...options}) => chart(data.timeline, curves, {...options, starts, events: data.events}));
    const [over, held] = [make(overTime), make(memory)];
    const sections = new Map();
    const elements = sectionsOf(data).map(([name, inputs, section_]) => {
      if (name === "charts") return overTimeSection(data, starts, over);
      if (name === "memory") return held.length ? section("Memory", null, ...held[0].nodes) : null;
      const element = section_() || h("div", {hidden: ""});
      sections.set(name, {element, inputs: JSON.stringify(inputs)});
      return element;
    });
    page.replaceChildren(...elements.filter(Boolean));
    const charts = [...over, ...held];
    for (const one of charts) one.draw();
    drawn = {charts, sections, shape: shapeOf(data)};
    onZoom = refine;
  };
  const withDetails = data => ({...data, timeline: refined(data.timeline, fine)});
  // Asks the server for more detail than the document has, if the window shows a part of the run.
  const refine = async () => {
    const {timeline} = whole_;
    const steps = window_ && source.live && path.length === 2 && timeline.steps_per_bucket > 1 ? stepsInWindow(timeline) : null;
    const wanted = String(window_);
    const answer = steps ? await source.load([...path, `window?first=${steps[0]}&last=${steps[1]}`]).catch(() => ({})) : {};
    if (wanted !== String(window_) || !drawn) return;
    fine = answer.timeline;
    keepFocus(() => update(withDetails(whole_)));
  };
  const shapeOf = data => JSON.stringify([...Object.values(picturesOf(data))].flat().map(({title, curves, marks}) => [title, curves.map(curve => curve.field), Boolean(marks && marks.length)])
    .concat([data.timeline.steps_per_bucket, startsOf(data).length]));
  const update = data => {
    const lists = Object.values(picturesOf(data)).flat();
    const keys = document.getElementById("events");
    if (keys) keys.replaceChildren(...eventKeys(data));
    drawn.charts.forEach((one, i) => one.update(data.timeline, lists[i].curves, data.marks, startsOf(data), data.events));
    for (const [name, inputs, section_] of sectionsOf(data)) {
      const old = drawn.sections.get(name);
      if (!old || old.inputs === JSON.stringify(inputs)) continue;
      const element = section_() || h("div", {hidden: ""});
      old.element.replaceWith(element);
      drawn.sections.set(name, {element, inputs: JSON.stringify(inputs)});
    }
  };
  return {
    data: null,
    load: () => source.load(path),
    changedBy: ids => ids.includes(path[1]),
    show(data) {
      this.data = data;
      data.id = path[1];
      numberMarks(data);
      const isFirst = !whole_;
      whole_ = data;
      keepFocus(() => {
        showHead(data);
        drawn && drawn.shape === shapeOf(data) ? update(withDetails(data)) : build(withDetails(data));
      });
      if (isFirst && window_) refine();
      document.getElementById("foot").replaceChildren("Written by flopmeter " + data.version + " on " + date(data.written_unix) + ". Charts by dygraphs.");
    },
  };
};
