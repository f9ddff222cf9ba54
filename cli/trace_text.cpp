// SPDX-License-Identifier: Apache-2.0
#include "trace_text.h"

#include <flopmeter/core/text.h>
#include <flopmeter/report/style.h>
#include <flopmeter/report/terminal_text.h>

#include <algorithm>
#include <filesystem>

namespace flopmeter {
namespace {

Seconds seconds(TraceNs time) {
  return {static_cast<double>(time) * 1e-9};
}

std::string or_none(const std::optional<double>& mfu) {
  return mfu ? percent(*mfu) : "n/a";
}

std::string share(TraceNs part, TraceNs whole) {
  return whole > 0 ? percent(static_cast<double>(part) / static_cast<double>(whole)) : "n/a";
}

std::string heading(const DeviceReport& report) {
  std::string text = bold(printable(std::filesystem::path{report.file}.filename().string()));
  if (report.rank) {
    text += "  rank " + std::to_string(*report.rank);
    if (report.world_size) text += " of " + std::to_string(*report.world_size);
  }
  if (report.device_index)
    text += "  " + (report.device_name ? printable(*report.device_name) : "unnamed device") +
            ", device " + std::to_string(*report.device_index);
  text += "\n" +
          dim(grouped(report.events) + " events: " + grouped(report.kernels) + " kernels, " +
              grouped(report.memcpys) + " copies, " + grouped(report.memsets) + " fills") +
          "\n";
  return text;
}

std::string time_table(const DeviceReport& report) {
  const TimeSplit& split = report.split;
  Table table{"lrr"};
  const auto row = [&](std::string_view name, TraceNs time) {
    if (time > 0)
      table.row({std::string{name}, duration(seconds(time)), share(time, split.window)});
  };
  const auto exposed = [&](DeviceClass kind) {
    return split.exposed[static_cast<std::size_t>(kind)];
  };
  row("compute", exposed(DeviceClass::compute));
  row("exposed communication", exposed(DeviceClass::communication));
  row("exposed copies", exposed(DeviceClass::memcpy));
  row("exposed fills", exposed(DeviceClass::memset));
  for (std::size_t i = 0; i < idle_cause_count; ++i) {
    std::string cause{to_string(static_cast<IdleCause>(i))};
    std::replace(cause.begin(), cause.end(), '_', ' ');
    row("idle: " + cause, report.idle.time[i]);
  }
  table.row({dim("span of device work"), dim(duration(seconds(split.window))), ""});
  return "device time\n" + table.text();
}

/// That MFU counts.
std::string model_flops(const DeviceReport& report, const TraceStepReport& step) {
  if (report.formula) return si(static_cast<double>(report.formula->flops.value));
  return step.flops ? si(static_cast<double>(step.flops->useful().value)) : "n/a";
}

std::string step_table(const DeviceReport& report) {
  if (report.steps.empty()) return {};
  constexpr std::size_t most = 10;
  Table table{"lrrrr"};
  table.row({dim("step"), dim("device"), dim("host"), dim("model FLOPs"), dim("MFU")});
  for (std::size_t i = 0; i < std::min(report.steps.size(), most); ++i) {
    const TraceStepReport& step = report.steps[i];
    table.row({printable(step.name),
               step.device ? duration(seconds(step.device->length())) : "n/a",
               duration(seconds(step.host.length())),
               model_flops(report, step),
               or_none(step.mfu)});
  }
  std::string text = "steps\n" + table.text();
  if (report.steps.size() > most)
    text += "  … and " + std::to_string(report.steps.size() - most) + " more\n";
  return text;
}

std::string op_table(const DeviceReport& report) {
  if (report.profiles.empty() || report.profiles.back().rows.empty()) return {};
  const OpProfile& profile = report.profiles.back();
  constexpr std::size_t most = 8;
  Table table{"lrrrl"};
  table.row({dim("operator"), dim("time"), dim("calls"), dim("TFLOP/s"), dim("shape")});
  for (std::size_t i = 0; i < std::min(profile.rows.size(), most); ++i) {
    const OpProfileRow& row = profile.rows[i];
    const bool rated = row.flops > 0 && row.self.value > 0;
    table.row({printable(row.name),
               duration(row.self),
               std::to_string(row.calls),
               rated ? fixed(static_cast<double>(row.flops) / row.self.value * 1e-12, 1) : "",
               row.shape});
  }
  return std::string{"largest operators of "} +
         (report.steps.empty() ? "the trace" : "the last step") + "\n" + table.text();
}

/// The inner modules are what distinguishes long paths.
std::string ending(std::string path) {
  constexpr std::size_t most = 60;
  if (path.size() <= most) return path;
  const std::size_t slash = path.find('/', path.size() - most);
  return slash == std::string::npos ? path : "…" + path.substr(slash);
}

std::string module_table(const DeviceReport& report) {
  if (report.modules.empty()) return {};
  constexpr std::size_t most = 8;
  Table table{"lrrr"};
  table.row({dim("module"), dim("forward"), dim("backward"), dim("FLOPs")});
  for (std::size_t i = 0; i < std::min(report.modules.size(), most); ++i) {
    const ModuleTime& one = report.modules[i];
    table.row({ending(printable(one.module)),
               duration(seconds(one.forward)),
               duration(seconds(one.backward)),
               one.flops.value > 0 ? si(static_cast<double>(one.flops.value)) : ""});
  }
  return "largest modules of the trace, without the modules inside them\n" + table.text();
}

std::string other_work_table(const DeviceReport& report) {
  if (report.other_work.empty()) return {};
  constexpr std::size_t most = 6;
  Table table{"llrrrl"};
  table.row(
      {dim("category"), dim("process"), dim("events"), dim("busy"), dim("span"), dim("longest")});
  for (std::size_t i = 0; i < std::min(report.other_work.size(), most); ++i) {
    const OtherWork& work = report.other_work[i];
    const UnsupportedOp& longest = work.longest.front();
    table.row({printable(work.category),
               printable(work.process),
               grouped(work.events),
               duration(seconds(work.busy)),
               duration(seconds(work.span)),
               printable(longest.op) + " (" + grouped(longest.calls) + ", " +
                   duration(seconds(longest.time)) + ")"});
  }
  return "events of other accelerators\n" + table.text();
}

std::string collective_table(const DeviceReport& report) {
  if (report.collectives.empty()) return {};
  constexpr std::size_t most = 6;
  Table table{"lrrrrr"};
  table.row({dim("collective"),
             dim("bytes"),
             dim("count"),
             dim("time"),
             dim("without waiting"),
             dim(report.collective_wait ? "bus" : "bus, with waiting")});
  for (std::size_t i = 0; i < std::min(report.collectives.size(), most); ++i) {
    const CollectiveSummary& one = report.collectives[i];
    table.row({printable(one.kind),
               one.bytes ? si(static_cast<double>(one.bytes->value)) + "B" : "n/a",
               grouped(one.count),
               duration(seconds(one.time)),
               one.transfer ? duration(seconds(*one.transfer)) : "n/a",
               one.bus_bytes_per_second ? si(*one.bus_bytes_per_second) + "B/s" : "n/a"});
  }
  return "collectives\n" + table.text();
}

std::string budget_table(const TimeBudget& budget) {
  if (budget.lines.empty()) return {};
  std::vector<double> parts;
  std::vector<std::size_t> useful;
  for (const BudgetLine& line : budget.lines) {
    if (line.cause == causes::useful) useful.push_back(parts.size());
    parts.push_back(budget.share(line.cause));
  }
  const std::vector<std::string> shares = percents(parts, useful);
  Table table{"lrr"};
  for (std::size_t i = 0; i < budget.lines.size(); ++i) {
    const BudgetLine& line = budget.lines[i];
    table.row({std::string{line.cause.text}, duration(seconds(line.nanoseconds)), shares[i]});
  }
  table.row({dim("all steps"), dim(duration(seconds(budget.total))), dim("100.0 %")});
  return "time budget\n" + table.text() + "\n";
}

std::string finding_list(const Diagnosis& diagnosis, bool several_ranks) {
  std::string text;
  int number = 0;
  for (const Finding& finding : diagnosis.findings) {
    const std::string start = std::to_string(++number) + ". ";
    const std::string below(start.size(), ' ');
    std::string first = bold(finding.rule) + "  " + finding.summary;
    // Most summaries state the share.
    if (finding.share && first.find(percent(*finding.share)) == std::string::npos)
      first += " (saves " + percent(*finding.share) + ")";
    if (several_ranks && finding.rank) first += ", rank " + std::to_string(*finding.rank);
    text += paragraph(bold(start), first);
    text += paragraph(below, printable(finding.evidence));
    text += paragraph(below, "Try: " + finding.recommendation);
  }
  return text.empty() ? text : "findings\n" + text + "\n";
}

std::string rank_text(const DeviceReport& report) {
  std::string text = heading(report) + "\n";
  text += bold("MFU " + or_none(report.mfu));
  if (report.coverage)
    text += dim("   " + percent(*report.coverage) + " of the compute time has counted FLOPs");
  text += "\n\n";
  if (report.device_index) text += time_table(report) + "\n";
  for (const std::string& part : {step_table(report),
                                  op_table(report),
                                  module_table(report),
                                  collective_table(report),
                                  other_work_table(report)}) {
    if (!part.empty()) text += part + "\n";
  }
  for (const std::string& note : report.notes) text += paragraph("note: ", note);
  return text;
}

}  // namespace

std::string trace_text(const TraceReport& report, const Diagnosis& diagnosis) {
  const bool several = report.ranks.size() > 1;
  std::string text = bold("MFU " + or_none(report.mfu)) + "\n\n";
  text += budget_table(diagnosis.budget) + finding_list(diagnosis, several);
  if (report.straggler)
    text += "rank " + std::to_string(report.straggler->rank) + " arrives last: the others wait " +
            duration(report.straggler->wait) + " for it on average\n\n";
  for (const DeviceReport& rank : report.ranks) text += rank_text(rank) + "\n";
  for (const std::string& note : report.notes) text += paragraph("note: ", note);
  return text;
}

}  // namespace flopmeter
