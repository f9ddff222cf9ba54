// The line to read first, and the main figures.
const leadText = ({headline, verdict, findings}) => {
  if (!known(headline.mfu)) return headline.no_mfu_reason;
  if (headline.mfu > 1) return "MFU above 100 %: the peak or the FLOPs of this run are wrong. See Configuration.";
  return verdict + "." + (findings && findings.length ? " Largest finding: " + findings[0].summary + "." : "");
};

// Whether the run goes on, as far as its last record shows: only then is there an arrival.
const isFresh = ({headline, written_unix}) => known(headline.last_unix) && written_unix - headline.last_unix < Math.max(60, 10 * (headline.step_seconds || 0));

const rankText = ({run, rank}) => known(rank) ? `rank ${whole(rank)} of ${whole(run.world_size)}` : run.world_size > 1 ? whole(run.world_size) + " ranks" : null;

const showHead = data => {
  const {headline, run} = data;
  const span = known(headline.first_unix)
    ? date(headline.first_unix) + ", " + duration(headline.last_unix - headline.first_unix) : null;
  document.title = ["MFU " + text(headline.mfu, percent), visible(run.model || "flopmeter"), known(data.rank) ? "rank " + data.rank : null].filter(Boolean).join(" · ");
  const facts = ["flopmeter", run.model, run.device && run.device.name, rankText(data), span];
  const line = h("p", {class: "run"});
  facts.filter(Boolean).forEach((fact, i) => line.append(i ? " · " : "", fact === run.model || (known(data.rank) && fact === rankText(data)) ? h("b", {}, fact) : h("span", {}, fact)));
  const tiles = [
    ["HFU", text(headline.hfu, percent)],
    ["per device", text(headline.flops_per_second_device, value => unit(value, "FLOP/s"))],
    ["tokens per second", text(headline.tokens_per_second, whole)],
    ["samples per second", text(headline.samples_per_second, shown["per second"])],
    ["mean step", text(headline.step_seconds, duration)],
    ["train steps", whole(headline.train_steps)],
    ["step", known(run.total_steps) ? `${whole(headline.last_step || 0)} of ${whole(run.total_steps)}` : "n/a"],
    ["ETA", isFresh(data) ? text(headline.remaining_seconds, duration) : "n/a"],
    ["goodput", text(headline.goodput, percent), "time of the train steps, of the run's time; evaluation, checkpoints, compilation, and startup are the rest"],
  ].filter(([, value]) => value !== "n/a");
  document.getElementById("head").replaceChildren(
    line,
    h("h1", {}, "MFU " + text(headline.mfu, percent)),
    h("p", {class: "lead"}, leadText(data)),
    h("div", {class: "tiles"}, tiles.map(([name, value, help]) => h("div", {class: "tile", title: help}, h("b", {}, value), h("span", {}, name)))));
};
