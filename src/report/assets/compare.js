// The comparison of 2 to 8 runs.
const runShades = ["accent", "second", "good", "optimizer", "data", "communication", "checkpoint", "other"];
const nameOf = (data, i) => data.run.model || data.run.run_id || "run " + (i + 1);
const labelsOf = documents => documents.map((data, i) => {
  const folder = (data.run.directory || "").split("/").filter(Boolean).slice(-1)[0];
  return folder || nameOf(data, i);
});
const runKey = i => h("i", {class: "key", style: {background: `var(--${runShades[i]})`}});

// Where each bucket of a run lies on the axis.
const placesOf = ({timeline, run}, by) => {
  if (by === "step") return timeline.step;
  if (by === "time") return timeline.time.map(time => time - timeline.time[0]);
  const tokens = curveOf(timeline)("tokens");
  if (!tokens) return timeline.step.map(() => null);
  let sum = 0;  // of all ranks; steps without a record count as the mean of their bucket
  return tokens.mean.map((mean, i) => sum += (mean || 0) * (timeline.last_step[i] - timeline.step[i] + 1) * (run.data_parallel || 1));
};
// Rows of [place, value of each run]; a run has values at its own places only.
const overlay = (documents, field, by) => {
  const rows = new Map();
  documents.forEach((data, i) => {
    const curve = curveOf(data.timeline)(field);
    if (!curve) return;
    const places = placesOf(data, by);
    places.forEach((place, j) => {
      if (!known(place) || !known(curve.mean[j])) return;
      if (!rows.has(place)) rows.set(place, Array(documents.length).fill(null));
      rows.get(place)[i] = curve.mean[j];
    });
  });
  return [...rows].sort((a, b) => a[0] - b[0]).map(([place, values]) => [place, ...values]);
};
const overlayChart = (documents, labels, field, title, by) => {
  const rows = overlay(documents, field, by);
  if (!rows.length) return null;
  const unit_ = documents.map(({timeline}) => curveOf(timeline)(field)).find(Boolean).unit;
  const format = onAxis[unit_] || shown[unit_] || si;
  const legend = h("div", {class: "legend"});
  const element = h("div", {class: "chart small", role: "img", tabindex: "0", "aria-label": title + ": plus and minus zoom, arrows move"});
  const fill = values => legend.replaceChildren(h("h3", {}, title), ...labels.map((label, i) =>
    h("span", {}, runKey(i), label, values && known(values[i]) ? [" ", h("b", {}, (shown[unit_] || si)(values[i]))] : null)));
  const draw = () => {
    fill(null);
    const numbers = rows.flatMap(row => row.slice(1).filter(known));
    const graph = new Dygraph(element, rows, {
      labels: ["x", ...labels.map((label, i) => i + label)], colors: labels.map((_, i) => color(runShades[i])), connectSeparatedPoints: true,
      strokeWidth: 1.6, gridLineColor: color("line"), axisLineColor: color("line"), legend: "never", showLabelsOnHighlight: false, xRangePad: 4, rightGap: 8,
      valueRange: [Math.min(0, ...numbers), 1.06 * Math.max(...numbers) || 1], dateWindow: window_, drawHighlightPointCallback: drawPointer,
      axes: {y: {axisLabelWidth: 74, axisLabelFormatter: value => format(value), pixelsPerLabel: 32},
             x: {axisLabelWidth: 84, axisLabelFormatter: value => by === "time" ? duration(value).replace(/\.0+ | 0+ (s|min)$/, " ") : si(value), drawGrid: false, pixelsPerLabel: 60}},
      highlightCallback: (event, x, dots, row) => {
        const near = i => { for (let j = row; j >= 0; --j) if (known(rows[j][i + 1])) return rows[j][i + 1]; return null; };
        fill(labels.map((_, i) => near(i)));
      },
      unhighlightCallback: () => fill(null),
      zoomCallback: (low, high) => setWindow(graph.isZoomed("x") ? [low, high] : null),
    });
    element.addEventListener("keydown", event => moveWindow(event, graph));
    charts.push({graph, legend, curves: [], overlay: true});
    redraws.add(() => graph.updateOptions({colors: labels.map((_, i) => color(runShades[i])), gridLineColor: color("line"), axisLineColor: color("line")}));
  };
  return {nodes: [legend, element], draw};
};

// Time by cause, one column for each run: per step, or per token if the steps of the runs have
// different numbers of them. All bars have one scale.
const budgetsSection = (documents, labels) => {
  const usable = documents.filter(({budget}) => budget && budget.length);
  if (!usable.length) return section("Where the time goes", null, missing("No run has a time budget."));
  const tokensOf = ({headline}) => headline.tokens_per_second * headline.step_seconds;
  const tokens = usable.map(tokensOf);
  const byTokens = Math.min(...tokens) > 0 && Math.max(...tokens) > 1.01 * Math.min(...tokens);
  const [amount, many] = byTokens ? ["1,000 tokens", 1000] : ["step", 1];
  const amounts = data => data.headline.train_steps * (byTokens ? tokensOf(data) : 1) / many;
  const mean = (data, cause) => {
    const line = (data.budget || []).find(one => one.cause === cause);
    return line ? line.seconds / amounts(data) : 0;
  };
  const names = new Map(usable.flatMap(({cause_texts}) => Object.entries(cause_texts)));
  const total = data => (data.budget || []).reduce((sum, line) => sum + line.seconds, 0) / amounts(data);
  const longest = Math.max(...usable.map(total));
  const causes = [...names.keys()].sort((a, b) => Math.max(...usable.map(data => mean(data, b))) - Math.max(...usable.map(data => mean(data, a))));
  const change = (data, cause) => documents.length === 2 && data === documents[1] ? mean(data, cause) - mean(documents[0], cause) : null;
  const cell = (data, cause) => {
    const seconds = mean(data, cause), difference = change(data, cause);
    return [seconds ? duration(seconds) : "–", known(difference) && Math.abs(difference) > 0.01 * longest ? h("small", {}, (difference < 0 ? "−" : "+") + duration(Math.abs(difference))) : null];
  };
  return section("Where the time goes", `Mean time per ${amount} by cause. All bars have the same scale: a shorter bar is a faster run.`,
    documents.map((data, i) => h("div", {class: "budget-row"}, h("span", {}, labels[i]),
      h("div", {class: "stack", role: "img", "aria-label": "time by cause, " + visible(labels[i])}, (data.budget || []).map(line =>
        h("span", {title: `${names.get(line.cause)} ${duration(line.seconds / amounts(data))} per ${amount}, ${percent(line.share)}`, style: {flex: line.seconds / amounts(data) / longest + " 1 0", background: `var(--${shadeOf(line.cause)})`}})),
        h("span", {style: {flex: 1 - total(data) / longest + " 1 0", background: "transparent"}})),
      h("span", {class: "num"}, duration(total(data))))),
    table([["cause", "side"], ...labels.map(label => [label, "r"])], causes.map(cause => ({cells: [h("span", {}, h("i", {class: "key", style: {background: `var(--${shadeOf(cause)})`}}), names.get(cause)), ...documents.map(data => cell(data, cause))]}))));
};

const figuresSection = (documents, labels, ids) => {
  const rows = [["MFU", data => text(data.headline.mfu, percent)], ["mean step", data => text(data.headline.step_seconds, duration)],
    ["tokens per second", data => text(data.headline.tokens_per_second, whole)], ["samples per second", data => text(data.headline.samples_per_second, shown["per second"])],
    ["train steps", data => whole(data.headline.train_steps)], ["model", data => data.run.model || "n/a"], ["device", data => data.run.device.name || "n/a"],
    ["ranks", data => whole(data.ranks.count)], ["largest finding", data => data.findings && data.findings.length ? data.findings[0].summary : "none"]];
  return section("Side by side", null, table([["", "side"], ...labels.map(label => [label, "r wrap"])],
    rows.map(([name, show]) => ({cells: [name, ...documents.map(show)]})).concat([{cells: ["", ...ids.map(id => h("a", {href: "#/run/" + id}, "open"))]}])));
};

const compareAxes = ["step", "time", "tokens"];
const compareView = ids => {
  let documents = [];
  const draw = () => {
    const zoom = window_;
    forgetCharts();
    window_ = zoom;
    const by = compareAxes.includes(kept("axis")) ? kept("axis") : "step";
    const labels = labelsOf(documents);
    const made = [["mfu", "MFU"], ["tokens_per_second", "Tokens per second"], ["step_seconds", "Step time"], ["loss", "Loss"]]
      .map(([field, title]) => overlayChart(documents, labels, field, title, by)).filter(Boolean);
    const choose = name => { keep("axis", name === "step" ? "" : name); keep("zoom", ""); window_ = null; draw(); };
    const switch_ = h("div", {class: "switch", role: "group", "aria-label": "horizontal axis"}, compareAxes.map(name =>
      h("button", {type: "button", id: "axis-" + name, "aria-pressed": String(by === name), onclick: () => choose(name)}, "by " + name)));
    document.title = "Comparison of " + documents.length + " runs";
    keepFocus(() => {
      document.getElementById("head").replaceChildren(h("h1", {class: "list-title"}, `Comparison of ${documents.length} runs`));
      document.getElementById("page").replaceChildren(figuresSection(documents, labels, ids), budgetsSection(documents, labels),
        h("section", {}, h("div", {class: "bar-head"}, h("h2", {}, "Over the run"), switch_), ...made.flatMap(one => one.nodes)));
      for (const one of made) one.draw();
    });
  };
  return {
    load: () => Promise.all(ids.map(id => source.load(["run", id]))),
    changedBy: changed => ids.some(id => changed.includes(id)),
    show: data => { documents = data; draw(); },
  };
};
