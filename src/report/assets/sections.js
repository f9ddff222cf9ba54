// Lists of bars, and tables.
const bar = (left, width, name) =>
  h("div", {class: "track"}, h("span", {style: {left: 100 * left + "%", width: 100 * width + "%", background: `var(--${name})`}}));
const barRow = (name, width, shade, value, {help, key} = {}) => [
  h("span", {title: help}, key ? h("i", {class: "key", style: {background: `var(--${shade})`}}) : null, name),
  bar(0, width, shade), h("span", {class: "num"}, value[0], value[1] ? h("small", {}, value[1]) : null)];

const times = value => fixed(value, 2) + " × faster";
const mfuThen = (value, peak) => "MFU " + percent(value) + (peak ? " of the " + peak + " peak" : "");
const findingItem = what_ifs => (finding, i) => h("li", {},
  h("span", {class: "n"}, String(i + 1)),
  h("b", {class: "what"}, finding.summary),
  h("span", {class: "cost"}, known(finding.share) ? percent(finding.share) : ""),
  h("p", {class: "soft"}, finding.evidence),
  h("p", {}, h("b", {}, "Try: "), finding.recommendation),
  h("p", {class: "soft"}, known(finding.speedup) ? h("span", {class: "gain"}, times(finding.speedup) + (known(finding.mfu_then) ? ", " + mfuThen(finding.mfu_then, what_ifs[i].peak) : "")) : null,
    h("code", {}, finding.rule), known(finding.rank) ? " · rank " + finding.rank : "",
    known(finding.confidence) ? " · confidence " + fixed(100 * finding.confidence, 0) + " %" : ""));

const findingsSection = ({findings, diagnosis_missing, marks, what_ifs}) => {
  if (!findings) return section("Findings", null, missing(diagnosis_missing));
  const passing = marks.filter(mark => !mark.number);
  return section("Findings", findings.length ? "What costs time, largest first, and what to do about it. The share of a finding is the time that its fix saves." : null,
    findings.length ? h("ol", {class: "findings"}, findings.map(findingItem(what_ifs))) : h("p", {}, "Nothing found that costs 1 % of the time."),
    passing.length ? h("p", {class: "note after"}, "Seen in parts of the run, on the lowest rank: ", passing.map(mark =>
      `steps ${whole(mark.first_step)}–${whole(mark.last_step)} ${words(mark.rule)} (${percent(mark.share)} of the time)`).join("; ") + ".") : null);
};

// Colors of the causes; those of one kind share a hue.
const causeShade = {useful: "good", compute: "good", matmul_inefficiency: "forward", memory_bound: "backward", launch_overhead: "second", data_loading: "data", cpu_bound: "data",
  optimizer: "optimizer", communication: "communication", straggler: "communication", pipeline_bubble: "communication", unexplained: "other", loop: "evaluation", recompute: "checkpoint", padding: "checkpoint",
  host_to_device: "communication", synchronization: "communication", busy_machine: "evaluation", garbage_collection: "evaluation", interpreter_lock: "evaluation"};
const shadeOf = cause => causeShade[cause] || "accent";

// Time that is left of each cause with some fixes: fixes of different causes add up, fixes of one cause multiply.
const withFixes = (budget, what_ifs) => {
  const left = budget.map(line => what_ifs.reduce((seconds, fix) =>
    seconds * (1 - Math.min(1, (fix.savings[line.cause] || 0) / line.seconds)), line.seconds));
  const total = left.reduce((sum, seconds) => sum + seconds, 0);
  const factor = what_ifs.reduce((product, fix) => product * fix.useful_factor, 1);
  return {left, total, factor};
};
const budgetSection = data => {
  const title = "Where the time went";
  const {budget, cause_texts, headline, findings, what_ifs, missing_signals, diagnosis_missing, peak} = data;
  if (!budget) return section(title, null, missing(diagnosis_missing));
  if (!budget.length) return section(title, null, missing("No budget: MFU is above 100 %. See the findings."));
  const total = budget.reduce((sum, line) => sum + line.seconds, 0);
  // A share that MFU, the verdict, or a finding states is printed as it is there.
  const named = ["useful", (budget.find(line => line.cause !== "useful") || {}).cause, ...what_ifs.map(fix => fix.cause)];
  const shares = percents(budget.map(line => line.share), budget.flatMap((line, i) => named.includes(line.cause) ? [i] : []));
  const useful = (budget.find(line => line.cause === "useful") || {seconds: 0}).seconds;
  const parts = budget.map((line, i) => h("span", {title: `${cause_texts[line.cause]} ${shares[i]}, ${duration(line.seconds)}`, style: {flex: line.share + " 1 0", background: `var(--${shadeOf(line.cause)})`}}));
  const rest = h("span", {title: "saved", style: {flex: "0 1 0", background: "transparent"}});
  const result = h("p", {class: "note after"});
  const chosen = new Set(kept("fix").split(",").map(rule => findings.findIndex(finding => finding.rule === rule)).filter(i => i >= 0));
  const draw = () => {
    const fixes = what_ifs.filter((_, i) => chosen.has(i));
    const {left, total: then, factor} = withFixes(budget, fixes);
    left.forEach((seconds, i) => { parts[i].style.flex = seconds / total + " 1 0"; });
    rest.style.flex = 1 - then / total + " 1 0";
    const named = (fixes.find(fix => fix.peak !== peak) || {peak}).peak;
    result.textContent = fixes.length ? `With ${fixes.length > 1 ? "these fixes" : "this fix"}: ${times(total / then)}, step ${duration(then / headline.train_steps)}` +
      (known(headline.mfu) ? ", " + mfuThen(useful * factor / then, named) : "") + "." : "";
  };
  const choose = (i, on) => {
    on ? chosen.add(i) : chosen.delete(i);
    keep("fix", [...chosen].map(fix => findings[fix].rule).join(","));
    draw();
  };
  const switches = findings.map((finding, i) => Object.keys(what_ifs[i].savings).length ? h("label", {class: "what-if"},
    h("input", {type: "checkbox", id: "fix-" + finding.rule, checked: chosen.has(i) ? "" : null, onchange: event => choose(i, event.target.checked)}),
    ` ${words(finding.rule)}: ${times(finding.speedup)}`) : null).filter(Boolean);
  draw();
  return section(title, `All train steps, ${duration(total)}. Every nanosecond belongs to one cause; the share of useful math is MFU.`,
    h("div", {class: "stack", role: "img", "aria-label": "time by cause"}, parts, rest),
    switches.length ? h("p", {class: "note"}, "What if: ", switches) : null, result,
    h("div", {class: "rows"}, budget.flatMap((line, i) => barRow(cause_texts[line.cause], line.share / budget[0].share, shadeOf(line.cause),
      [shares[i], duration(line.seconds / headline.train_steps) + " per step"], {help: line.cause, key: true}))),
    missing_signals.length ? h("details", {}, h("summary", {}, "What was not measured"), missing_signals.map(signal => h("p", {class: "note"}, signal))) : null);
};

const phasesSection = ({phases, headline}) => {
  if (!phases.length) return section("Phases", null, missing("No record has phases."));
  const most = Math.max(...phases.map(phase => phase.share));
  const shares = percents(phases.map(phase => phase.share));
  return section("Phases", "What a mean train step of " + text(headline.step_seconds, duration) + " is spent on.",
    h("div", {class: "stack", role: "img", "aria-label": "shares of the step's time"}, phases.map((phase, i) =>
      h("span", {title: phase.name + " " + shares[i], style: {flex: phase.share + " 1 0", background: `var(--${phase.name})`}}))),
    h("div", {class: "rows"}, phases.flatMap((phase, i) =>
      barRow(phase.name, phase.share / most, phase.name, [shares[i], duration(phase.mean_seconds)], {help: phase.help, key: true}))));
};

// Parts of a program that the program names, such as rollout, reward, and update.
const stagesSection = ({stages}) => {
  if (!stages.length) return null;
  const total = stages.reduce((sum, stage) => sum + stage.seconds, 0);
  return section("Stages", "Time of the records by stage, all kinds of records together.",
    h("div", {class: "rows"}, [...stages].sort((a, b) => b.seconds - a.seconds).flatMap(stage =>
      barRow(stage.name, stage.seconds / total, "accent", [percent(stage.seconds / total), duration(stage.seconds) + (known(stage.mfu) ? ", MFU " + percent(stage.mfu) : "") + (known(stage.tokens_per_second) ? `, ${whole(stage.tokens_per_second)} tokens/s` : "")]))));
};

const dtypesSection = ({dtypes, headline}) => {
  const total = dtypes.reduce((sum, row) => sum + row.flops, 0);
  if (!(total > 0)) return section("FLOPs by dtype", null, missing("No record has FLOPs by dtype."));
  return section("FLOPs by dtype", "Executed operations, the numerator of HFU" + (headline.recompute_share ? `; ${percent(headline.recompute_share)} of them are activation recomputation.` : "."),
    h("div", {class: "rows"}, [...dtypes].sort((a, b) => b.flops - a.flops).flatMap(row =>
      barRow(row.name, row.flops / total, "accent", [percent(row.flops / total), unit(row.flops / headline.train_steps, "FLOP") + " per step"]))));
};

const operationsSection = ({profile}) => {
  const title = "FLOPs and time by operation";
  if (!profile || !profile.ops.length)
    return half(section(title, null, missing("No profiled step in this run. A profile lists every operation of one step in many.")));
  const flops = profile.ops.reduce((sum, row) => sum + row.flops, 0);
  const most = Math.max(...profile.ops.map(row => row.share || 0), 1e-9);
  const cell = (value, share, part, shade) => value === null ? "–" : h("div", {class: "meter"}, h("span", {class: "num"}, value), bar(0, part, shade), h("span", {class: "num soft"}, text(share, percent)));
  return section(title, `The ${profile.ops.length} operations of the profiled step ${whole(profile.step)} that took longest.`, table(
    [["operation", ""], ["calls", "r"], ["FLOPs", "bars"], ["time", "bars"]],
    profile.ops.map(row => ({cells: [h("code", {}, breakable(shortOp(row.name))), whole(row.calls),
      cell(row.flops ? unit(row.flops, "FLOP") : null, row.flops / flops, row.flops / flops, "accent"),
      cell(duration(row.seconds), row.share, (row.share || 0) / most, "second")]})), true));
};

const configurationSection = data => {
  const {run, headline} = data;
  const device = run.device || {};
  const peaks = peakGroups(device).map(({rate, dtypes}) => dtypes + " " + unit(rate, "FLOP/s")).join("; ");
  const starts = run.starts.map(({stamp, step}, i) => i && known(step) ? `${stamp} from step ${whole(step)}` : stamp);
  const counted = data.ranks.count > 1 ? "records of all ranks" : "steps";
  const rows = [
    ["run directory", run.directory], ["run", run.run_id], [starts.length > 1 ? "starts" : "start", starts.join(", ")], ["model", run.model], ["device", device.name],
    ["peak", peaks || "none: no MFU"], ["peak from", device.source],
    ["memory bandwidth", known(device.memory_bytes_per_second) ? unit(device.memory_bytes_per_second, "B/s") : null],
    ["ranks", text(run.world_size, whole)], ["data parallel", text(run.data_parallel, whole)], ["devices per rank", text(run.devices_per_rank, whole)], ["mode", run.mode],
    ["FLOPs from", headline.flops_sources.map(([name, steps]) => `${name} (${whole(steps)} ${counted})`).join(", ")],
    ["convention", run.convention ? run.convention + (run.convention_help ? ": " + run.convention_help : "") : null],
    ["attention pairs", headline.attention_pairs], [data.ranks.count > 1 ? "records excluded" : "steps excluded", headline.tagged_steps.map(([name, steps]) => `${whole(steps)} ${name}`).join(", ")],
    ["cost of monitoring", known(headline.monitor_share) ? (headline.monitor_share < 1e-4 ? "less than 0.01 %" : percent(headline.monitor_share)) + " of the training thread's time" : null],
    ["lost records", headline.dropped_records ? whole(headline.dropped_records) : null],
  ].filter(([, value]) => value && value !== "n/a");
  return section("Configuration and conventions",
    "MFU is the least time that the model FLOPs take at the hardware peak, divided by the wall time of the train steps. HFU also counts recomputation.",
    h("dl", {class: "facts"}, rows.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
    run.model_source ? h("details", {}, h("summary", {}, "Details of the model"), h("pre", {}, JSON.stringify(run.model_source, null, 2))) : null,
    data.notes.map(note => h("p", {class: "note after"}, note)));
};
