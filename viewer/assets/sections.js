// The pictures that are lists of bars, and the tables.
const bar = (left, width, name) =>
  h("div", {class: "track"}, h("span", {style: {left: 100 * left + "%", width: 100 * width + "%", background: `var(--${name})`}}));
const barRow = (name, left, width, shade, value, extra, key) => [
  h("span", {title: extra}, key ? h("i", {class: "key", style: {background: `var(--${shade})`}}) : null, name),
  bar(left, width, shade), h("span", {class: "num"}, value[0], value[1] ? h("small", {}, value[1]) : null)];

const findingItem = (finding, i) => h("li", {},
  h("span", {class: "n"}, String(i + 1)),
  h("b", {}, finding.summary),
  h("span", {class: "cost"}, known(finding.mfu_points) ? "−" + points(finding.mfu_points) + " points" : ""),
  h("p", {class: "soft"}, finding.evidence),
  h("p", {}, h("b", {}, "Try: "), finding.remedy,
    known(finding.expected_mfu) ? h("span", {class: "soft"}, " Expected MFU " + percent(finding.expected_mfu) + ".") : null),
  h("p", {class: "soft"}, h("code", {}, finding.rule), known(finding.rank) ? " · rank " + finding.rank : "",
    known(finding.confidence) ? " · confidence " + fixed(100 * finding.confidence, 0) + " %" : ""));

const findingsSection = ({findings, diagnosis_missing, marks}) => {
  if (!findings) return wide(section("Findings", null, missing(diagnosis_missing)));
  const passing = marks.filter(mark => !mark.number);
  return wide(section("Findings", findings.length ? "What costs MFU, dearest first, and what to do about it." : null,
    findings.length ? h("ol", {class: "findings"}, findings.map(findingItem)) : h("p", {}, "Nothing found that costs MFU worth naming."),
    passing.length ? h("p", {class: "note"}, "Earlier in the run: ", passing.map(mark =>
      `steps ${whole(mark.first_step)}–${whole(mark.last_step)} ${words(mark.rule)} (−${points(mark.mfu_points)} points)`).join("; ") + ".") : null));
};

const waterfallSection = ({waterfall, diagnosis_missing}) => {
  const title = "Where the MFU went";
  if (!waterfall) return section(title, null, missing(diagnosis_missing));
  let level = 1;
  const rows = [barRow(h("span", {class: "sum"}, "peak"), 0, 1, "other", ["100 %"])];
  for (const {cause, text: name, seconds, mfu_points} of waterfall.losses) {
    const [from, to] = [level - mfu_points, level].map(value => Math.max(0, Math.min(1, value))).sort((a, b) => a - b);
    level -= mfu_points;
    rows.push(barRow(name, from, to - from, cause === "unexplained" ? "other" : "data",
      [(mfu_points < 0 ? "+" : "−") + points(Math.abs(mfu_points)), duration(seconds)]));
  }
  rows.push(barRow(h("span", {class: "sum"}, "achieved"), 0, Math.max(0, Math.min(1, waterfall.mfu)), "good", [h("b", {}, percent(waterfall.mfu))]));
  return section(title, `From the hardware's peak down to what steps ${whole(waterfall.first_step)}–${whole(waterfall.last_step)} of the first rank achieved: each loss in MFU points and seconds; they sum to the gap.`,
    h("div", {class: "rows"}, rows.flat()),
    waterfall.missing.length ? h("details", {}, h("summary", {}, "what could not be told"), waterfall.missing.map(signal => h("p", {class: "note"}, signal))) : null);
};

const phasesSection = ({phases, headline}) => {
  if (!phases.length) return section("Phases", null, missing("No record says what the steps' time went to."));
  const most = Math.max(...phases.map(phase => phase.share));
  return section("Phases", "What a mean train step of " + text(headline.step_seconds, duration) + " is spent on.",
    h("div", {class: "stack", role: "img", "aria-label": "shares of the step's time"}, phases.map(phase =>
      h("span", {title: phase.name + " " + percent(phase.share), style: {flex: phase.share + " 1 0", background: `var(--${phase.name})`}}))),
    h("div", {class: "rows"}, phases.flatMap(phase =>
      barRow(phase.name, 0, phase.share / most, phase.name, [percent(phase.share), duration(phase.mean_seconds)], phase.help, true))));
};

const flopsSection = ({dtypes, survey, headline}) => {
  const parts = [];
  const total = dtypes.reduce((sum, row) => sum + row.flops, 0);
  if (total > 0) {
    parts.push(h("div", {class: "rows"}, [...dtypes].sort((a, b) => b.flops - a.flops).flatMap(row =>
      barRow(row.name, 0, row.flops / total, "accent", [percent(row.flops / total), unit(row.flops / headline.train_steps, "FLOP") + " a step"]))));
  } else parts.push(missing("No record tells the FLOPs by dtype."));
  if (headline.recompute_share) parts.push(h("p", {class: "note"}, percent(headline.recompute_share) + " of them recompute activations."));
  if (survey && survey.ops.length) {
    parts.push(h("p", {class: "note"}, `By operation, in the surveyed step ${whole(survey.step)}:`), table(
      [["operation", ""], ["calls", "r"], ["FLOPs", "r"], ["time", "r"], ["share of time", "r"]],
      survey.ops.map(row => ({cells: [h("code", {}, row.name), whole(row.calls), row.flops ? si(row.flops) : "–",
        duration(row.seconds), text(row.share, percent)]}))));
  } else parts.push(missing("By operation: no surveyed step in this run. A survey lists every operation of a step now and then."));
  return section("FLOPs by dtype and operation", "Executed operations (the numerator of HFU).", ...parts);
};

const ranksSection = ({ranks}) => {
  if (ranks.count < 2) return null;
  const off = cell => cell.step_seconds / ranks.median_seconds - 1;
  const scale = Math.max(0.05, ...ranks.strip.map(cell => Math.abs(off(cell))));
  const shown_ = cell => ({height: 50 * Math.abs(off(cell)) / scale + "%", [off(cell) < 0 ? "top" : "bottom"]: "50%"});
  const each = Math.ceil(ranks.count / ranks.strip.length);
  const all = ranks.rows.length === ranks.count;
  return wide(section(whole(ranks.count) + " ranks",
    `Time a rank spends on its own work in a step, against the median of ${duration(ranks.median_seconds)}: slower goes up, faster down, full height is ${percent(scale)}` +
    (each > 1 ? `; each bar is the slowest of ${each} ranks` : "") + ". The whole job runs at the pace of the slowest.",
    h("div", {class: ranks.strip.length > 200 ? "strip many" : "strip", role: "img", "aria-label": "own time by rank against the median"}, ranks.strip.map(cell =>
      h("span", {title: `rank ${cell.rank}: ${duration(cell.step_seconds)}`}, h("i", {class: cell.slow ? "slow" : null, style: shown_(cell)})))),
    all ? null : h("p", {class: "note"}, `The ${ranks.rows.length} slowest:`),
    table([["rank", "r"], ["steps", "r"], ["last step", "r"], ["own time a step", "r"], ["MFU", "r"], ["waiting for data", "r"], ["communication", "r"], ["peak memory", "r"], ["lost records", "r"]],
      ranks.rows.map(row => ({mark: row.slow ? "slow" : null, cells: [String(row.rank), whole(row.steps), whole(row.last_step), duration(row.step_seconds), text(row.mfu, percent),
        text(row.data_share, percent), text(row.communication_share, percent), text(row.memory_peak_bytes, bytes), whole(row.dropped_records)]})))));
};

const configurationSection = data => {
  const {run, headline} = data;
  const device = run.device || {};
  const peaks = Object.entries(device.peak_flops_per_second || {}).map(([dtype, rate]) => dtype + " " + unit(rate, "FLOP/s")).join(", ");
  const rows = [
    ["run directory", run.directory], ["run", run.run_id], ["starts", run.stamps && run.stamps.join(", ")], ["model", run.model], ["device", device.name],
    ["peak", peaks || "none: no MFU"], ["peak from", device.source],
    ["memory bandwidth", known(device.memory_bytes_per_second) ? unit(device.memory_bytes_per_second, "B/s") : null],
    ["ranks", text(run.world_size, whole)], ["data parallel", text(run.data_parallel, whole)], ["devices a rank", text(run.devices_per_rank, whole)], ["mode", run.mode],
    ["FLOPs from", headline.flops_sources.map(([name, steps]) => `${name} (${whole(steps)} steps)`).join(", ")],
    ["convention", run.convention ? run.convention + (run.convention_help ? ": " + run.convention_help : "") : null],
    ["attention pairs", headline.attention_pairs], ["steps left out", headline.tagged_steps.map(([name, steps]) => `${whole(steps)} ${name}`).join(", ")],
    ["cost of watching", known(headline.monitor_share) ? (headline.monitor_share < 1e-4 ? "less than 0.01 %" : percent(headline.monitor_share)) + " of the training thread's time" : null],
    ["lost records", headline.dropped_records ? whole(headline.dropped_records) : null],
  ].filter(([, value]) => value && value !== "n/a");
  return wide(section("Configuration and conventions",
    "MFU is the least time that the model's FLOPs need at the hardware's peak, over the time they took. HFU counts recomputed and repeated work too.",
    h("div", {class: "scroll"}, h("table", {}, h("tbody", {}, rows.map(([name, value]) =>
      h("tr", {}, h("td", {class: "key-cell"}, name), h("td", {}, value)))))),
    run.details ? h("details", {}, h("summary", {}, "details of the model"), h("pre", {}, JSON.stringify(run.details, null, 2))) : null,
    data.notes.map(note => h("p", {class: "note"}, note))));
};
