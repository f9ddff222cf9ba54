// The pictures that are lists of bars, and the tables.
const bar = (left, width, name) =>
  h("div", {class: "track"}, h("span", {style: {left: 100 * left + "%", width: 100 * width + "%", background: `var(--${name})`}}));
const barRow = (name, width, shade, value, {help, key} = {}) => [
  h("span", {title: help}, key ? h("i", {class: "key", style: {background: `var(--${shade})`}}) : null, name),
  bar(0, width, shade), h("span", {class: "num"}, value[0], value[1] ? h("small", {}, value[1]) : null)];

const findingItem = base => (finding, i) => h("li", {},
  h("span", {class: "n"}, String(i + 1)),
  h("b", {class: "what"}, finding.summary),
  h("span", {class: "cost"}, known(finding.mfu_points) ? "−" + points(finding.mfu_points) + " points" : ""),
  h("p", {class: "soft"}, finding.evidence),
  h("p", {}, h("b", {}, "Try: "), finding.recommendation),
  h("p", {class: "soft"}, known(finding.expected_mfu) ? h("span", {class: "gain"}, "MFU " + percent(base) + " → " + percent(finding.expected_mfu)) : null,
    h("code", {}, finding.rule), known(finding.rank) ? " · rank " + finding.rank : "",
    known(finding.confidence) ? " · confidence " + fixed(100 * finding.confidence, 0) + " %" : ""));

const findingsSection = ({findings, diagnosis_missing, marks, waterfall}) => {
  if (!findings) return section("Findings", null, missing(diagnosis_missing));
  const passing = marks.filter(mark => !mark.number);
  return section("Findings", findings.length ? "What costs MFU, dearest first, and what to do about it. The points of a finding are what mending it alone would give." : null,
    findings.length ? h("ol", {class: "findings"}, findings.map(findingItem(waterfall.mfu))) : h("p", {}, "Nothing found that costs MFU worth naming."),
    passing.length ? h("p", {class: "note after"}, "Earlier in the run: ", passing.map(mark =>
      `steps ${whole(mark.first_step)}–${whole(mark.last_step)} ${words(mark.rule)} (−${points(mark.mfu_points)} points)`).join("; ") + ".") : null);
};

// From the top: each bar hangs where the one above it ended.
const waterfallRows = ({losses, mfu}) => {
  const inside = value => Math.max(0, Math.min(1, value));
  const total = h("span", {class: "sum"}, "peak of the device");
  let level = 1;
  const rows = [[total, bar(0, 1, "other"), "", h("b", {}, "100 %"), ""]];
  for (const {cause, text: name, seconds, mfu_points} of losses) {
    const [from, to] = [inside(level - mfu_points), inside(level)].sort((a, b) => a - b);
    level -= mfu_points;
    rows.push([name, bar(from, to - from, mfu_points < 0 ? "good" : cause === "unexplained" ? "other" : "data"),
      (mfu_points < 0 ? "+" : "−") + points(Math.abs(mfu_points)), percent(level), duration(seconds)]);
  }
  rows.push([h("span", {class: "sum"}, "MFU"), bar(0, inside(mfu), "good"), "", h("b", {}, percent(mfu)), ""]);
  const heads = ["", "", "points", "leaves", "time"].map(name => h("span", {class: "head"}, name));
  return h("div", {class: "waterfall"}, heads, rows.flatMap(([name, track, ...numbers]) =>
    [h("span", {}, name), track, ...numbers.map((number, i) => h("span", {class: "num" + (i ? " more" : "")}, number))]));
};
const waterfallSection = ({waterfall, diagnosis_missing}) => {
  const title = "Where the MFU went";
  if (!waterfall) return section(title, null, missing(diagnosis_missing));
  const differs = Math.abs(waterfall.mfu_of_steps - waterfall.mfu) > 0.005;
  return section(title, `From the hardware's peak down to what steps ${whole(waterfall.first_step)}–${whole(waterfall.last_step)} of the first rank achieved. The losses sum to the gap.`,
    waterfallRows(waterfall),
    differs ? h("p", {class: "note after"}, `The steps alone had ${percent(waterfall.mfu_of_steps)} of the peak of the format they ran in. Here all time counts, padding does not, and the peak is that of the fastest format.`) : null,
    waterfall.missing.length ? h("details", {}, h("summary", {}, "What could not be told"), waterfall.missing.map(signal => h("p", {class: "note"}, signal))) : null);
};

const phasesSection = ({phases, headline}) => {
  if (!phases.length) return section("Phases", null, missing("No record says what the steps' time went to."));
  const most = Math.max(...phases.map(phase => phase.share));
  return section("Phases", "What a mean train step of " + text(headline.step_seconds, duration) + " is spent on.",
    h("div", {class: "stack", role: "img", "aria-label": "shares of the step's time"}, phases.map(phase =>
      h("span", {title: phase.name + " " + percent(phase.share), style: {flex: phase.share + " 1 0", background: `var(--${phase.name})`}}))),
    h("div", {class: "rows"}, phases.flatMap(phase =>
      barRow(phase.name, phase.share / most, phase.name, [percent(phase.share), duration(phase.mean_seconds)], {help: phase.help, key: true}))));
};

const dtypesSection = ({dtypes, headline}) => {
  const total = dtypes.reduce((sum, row) => sum + row.flops, 0);
  if (!(total > 0)) return section("FLOPs by dtype", null, missing("No record tells the FLOPs by dtype."));
  return section("FLOPs by dtype", "Executed operations, the numerator of HFU" + (headline.recompute_share ? `; ${percent(headline.recompute_share)} of them compute activations again.` : "."),
    h("div", {class: "rows"}, [...dtypes].sort((a, b) => b.flops - a.flops).flatMap(row =>
      barRow(row.name, row.flops / total, "accent", [percent(row.flops / total), unit(row.flops / headline.train_steps, "FLOP") + " a step"]))));
};

const operationsSection = ({profile}) => {
  const title = "FLOPs and time by operation";
  if (!profile || !profile.ops.length)
    return half(section(title, null, missing("No profiled step in this run. A profile lists every operation of a step now and then.")));
  const flops = profile.ops.reduce((sum, row) => sum + row.flops, 0);
  const most = Math.max(...profile.ops.map(row => row.share || 0), 1e-9);
  const cell = (value, share, part, shade) => value === null ? "–" : h("div", {class: "meter"}, h("span", {class: "num"}, value), bar(0, part, shade), h("span", {class: "num soft"}, text(share, percent)));
  return section(title, `The ${profile.ops.length} operations of the profiled step ${whole(profile.step)} that took longest.`, table(
    [["operation", ""], ["calls", "r"], ["FLOPs", "bars"], ["time", "bars"]],
    profile.ops.map(row => ({cells: [h("code", {}, breakable(shortOp(row.name))), whole(row.calls),
      cell(row.flops ? unit(row.flops, "FLOP") : null, row.flops / flops, row.flops / flops, "accent"),
      cell(duration(row.seconds), row.share, (row.share || 0) / most, "second")]})), true));
};

const ranksSection = ({ranks}) => {
  if (ranks.count < 2) return null;
  const off = cell => cell.step_seconds / ranks.median_seconds - 1;
  const scale = Math.max(0.05, ...ranks.strip.map(cell => Math.abs(off(cell))));
  const shown_ = cell => ({height: 50 * Math.abs(off(cell)) / scale + "%", [off(cell) < 0 ? "top" : "bottom"]: "50%"});
  const each = Math.ceil(ranks.count / ranks.strip.length);
  const all = ranks.rows.length === ranks.count;
  const signed = ratio => (ratio < 0 ? "−" : "+") + points(Math.abs(ratio)) + " %";
  return section(whole(ranks.count) + " ranks",
    `Time that a rank spends on its own work in a step, against the median of ${duration(ranks.median_seconds)}` +
    (each > 1 ? `; each bar is the slowest of ${each} ranks` : "") + ". The whole job runs at the pace of the slowest.",
    h("div", {class: "strip-box"},
      h("div", {class: "strip-axis"}, h("span", {}, signed(scale)), h("span", {}, "median"), h("span", {}, signed(-scale))),
      h("div", {class: ranks.strip.length > 200 ? "strip many" : "strip", role: "img", "aria-label": "own time by rank against the median"}, ranks.strip.map(cell =>
        h("span", {title: `rank ${cell.rank}: ${duration(cell.step_seconds)}, ${signed(off(cell))}`}, h("i", {class: cell.slow ? "slow" : null, style: shown_(cell)}))))),
    all ? null : h("p", {class: "note"}, `The ${ranks.rows.length} slowest:`),
    table([["rank", "r"], ["own time a step", "r"], ["against median", "r"], ["MFU", "r"], ["waiting for data", "r"], ["communication", "r"], ["peak memory", "r"], ["steps", "r"], ["last step", "r"], ["lost records", "r"]],
      ranks.rows.map(row => ({mark: row.slow ? "slow" : null, cells: [String(row.rank), duration(row.step_seconds), signed(off(row)), text(row.mfu, percent),
        text(row.data_share, percent), text(row.communication_share, percent), text(row.memory_peak_bytes, bytes), whole(row.steps), whole(row.last_step), whole(row.dropped_records)]}))));
};

const configurationSection = data => {
  const {run, headline} = data;
  const device = run.device || {};
  const peaks = peakGroups(device).map(({rate, dtypes}) => dtypes + " " + unit(rate, "FLOP/s")).join("; ");
  const starts = run.starts.map(({stamp, step}, i) => i && known(step) ? `${stamp} from step ${whole(step)}` : stamp);
  const rows = [
    ["run directory", run.directory], ["run", run.run_id], [starts.length > 1 ? "starts" : "start", starts.join(", ")], ["model", run.model], ["device", device.name],
    ["peak", peaks || "none: no MFU"], ["peak from", device.source],
    ["memory bandwidth", known(device.memory_bytes_per_second) ? unit(device.memory_bytes_per_second, "B/s") : null],
    ["ranks", text(run.world_size, whole)], ["data parallel", text(run.data_parallel, whole)], ["devices a rank", text(run.devices_per_rank, whole)], ["mode", run.mode],
    ["FLOPs from", headline.flops_sources.map(([name, steps]) => `${name} (${whole(steps)} steps)`).join(", ")],
    ["convention", run.convention ? run.convention + (run.convention_help ? ": " + run.convention_help : "") : null],
    ["attention pairs", headline.attention_pairs], ["steps left out", headline.tagged_steps.map(([name, steps]) => `${whole(steps)} ${name}`).join(", ")],
    ["cost of watching", known(headline.monitor_share) ? (headline.monitor_share < 1e-4 ? "less than 0.01 %" : percent(headline.monitor_share)) + " of the training thread's time" : null],
    ["lost records", headline.dropped_records ? whole(headline.dropped_records) : null],
  ].filter(([, value]) => value && value !== "n/a");
  return section("Configuration and conventions",
    "MFU is the least time that the model's FLOPs need at the hardware's peak, over the time they took. HFU counts recomputed and repeated work too.",
    h("dl", {class: "facts"}, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    run.details ? h("details", {}, h("summary", {}, "Details of the model"), h("pre", {}, JSON.stringify(run.details, null, 2))) : null,
    data.notes.map(note => h("p", {class: "note after"}, note)));
};
