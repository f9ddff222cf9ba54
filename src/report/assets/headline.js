// The one line to read first, and the figures beside it.
const verdictClass = verdict => verdict === "good" || verdict === "fair" ? verdict : "low";

const leadText = data => {
  const {headline, run, waterfall, findings} = data;
  if (!known(headline.mfu)) return headline.no_mfu_reason;
  if (headline.verdict === "impossible")
    return "More than 100 % cannot be: the peak or the FLOPs of this run are wrong. See Configuration.";
  const lost = "At the hardware's peak the model's work of the last " + whole(run.log_interval || 1) + " steps would take " + percent(headline.mfu) + " of the time it took. ";
  if (findings && findings.length) return lost + "Largest finding: " + findings[0].summary;
  const losses = waterfall ? waterfall.losses : [];
  if (!losses.length) return lost;
  const worst = losses.reduce((a, b) => b.mfu_points > a.mfu_points ? b : a);
  return lost + "The largest loss: " + worst.text + ", " + points(worst.mfu_points) + " points.";
};

const showHead = data => {
  const {headline, run} = data;
  const span = known(headline.first_unix)
    ? date(headline.first_unix) + ", " + duration(headline.last_unix - headline.first_unix) : null;
  document.title = "MFU " + text(headline.mfu, percent) + " · " + visible(run.model || "flopmeter report");
  const facts = ["flopmeter", run.model, run.device && run.device.name, run.world_size > 1 ? run.world_size + " ranks" : null, span];
  const line = h("p", {class: "run"});
  facts.filter(Boolean).forEach((fact, i) => line.append(i ? " · " : "", i === 1 && run.model ? h("b", {}, fact) : h("span", {}, fact)));
  const tiles = [
    ["MFU over the run", text(headline.mfu_run, percent)],
    ["HFU over the run", text(headline.hfu_run, percent)],
    ["of one device", text(headline.flops_per_second_device, value => unit(value, "FLOP/s"))],
    ["tokens a second", text(headline.tokens_per_second, whole)],
    ["samples a second", text(headline.samples_per_second, value => value < 100 ? fixed(value, 2) : whole(value))],
    ["mean step", text(headline.step_seconds, duration)],
    ["train steps", whole(headline.train_steps)],
    ["goodput", text(headline.goodput, percent)],
  ].filter(([, value]) => value !== "n/a");
  document.getElementById("head").append(
    line,
    h("h1", {}, "MFU " + text(headline.mfu, percent),
      headline.verdict ? h("span", {class: "badge " + verdictClass(headline.verdict)}, headline.verdict) : null),
    h("p", {class: "lead"}, leadText(data)),
    h("div", {class: "tiles"}, tiles.map(([name, value]) => h("div", {class: "tile"}, h("b", {}, value), h("span", {}, name)))));
};
