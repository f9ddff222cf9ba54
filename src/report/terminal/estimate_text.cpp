// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/text.h>
#include <flopmeter/report/estimate_text.h>
#include <flopmeter/report/style.h>
#include <flopmeter/report/terminal_text.h>

#include <algorithm>

namespace flopmeter {
namespace {

/// A source short enough for a line; --json has all of it.
std::string brief(const std::string& text) {
  std::string_view cut = std::string_view{text}.substr(0, text.find(" ["));
  if (cut.size() > 60) cut = cut.substr(0, cut.rfind(' ', 57));
  while (cut.ends_with(';') || cut.ends_with(',')) cut.remove_suffix(1);
  return printable(cut) + (cut.size() < text.size() ? " …" : "");
}

/// Parameters with a unit: 8.03 B.
std::string parameters(WideInt number) {
  std::string text = si(static_cast<double>(number));
  if (text.ends_with('G')) text.back() = 'B';
  return text;
}

std::string si_flops(Flops flops) {
  return si(static_cast<double>(flops.value));
}

std::string count_of(WideInt number, std::string_view what) {
  return grouped(number) + " " + std::string{what} + (number == 1 ? "" : "s");
}

std::string heading(const Estimate& e) {
  std::string line = bold(printable(e.model)) + dim(" (" + printable(e.family) + ")");
  line += "  " + parameters(e.parameters.total) + " parameters";
  if (e.parameters.active != e.parameters.total)
    line += ", " + parameters(e.parameters.active) + " active";
  if (e.parameters.trainable != e.parameters.total) {
    line += ", " + parameters(e.parameters.trainable) + " trainable";
  }
  if (e.parameters.buffers.value_or(0) > 0)
    line += " (published: " + grouped(*e.parameters.buffers) + " more, of buffers)";
  line +=
      "\n" + count_of(e.sequences, "sequence") + ", " + count_of(e.tokens, "token") + " per step";
  if (e.visual_tokens > 0) line += ", " + grouped(e.visual_tokens) + " of them visual";
  return line + ", convention " + e.convention + "\n\n";
}

std::string components(const Estimate& e) {
  Table table{"lrrrl"};
  table.row({dim("component"), dim("forward"), dim("backward"), dim("share"), ""});
  const auto total = static_cast<double>(e.model_flops.value);
  for (std::size_t c = 0; c < component_count; ++c) {
    const PartFlops& part = e.parts.parts[c];
    const Flops sum = part.forward + part.backward;
    if (sum.value == 0) continue;
    const double share = static_cast<double>(sum.value) / total;
    table.row({std::string{to_string(static_cast<Component>(c))},
               si_flops(part.forward),
               si_flops(part.backward),
               percent(share),
               accent(block_bar(share, 30))});
  }
  table.row({bold("model FLOPs"),
             si_flops(e.forward),
             si_flops(e.backward),
             bold(si_flops(e.model_flops)),
             ""});
  return table.text();
}

std::string rates(const Estimate& e) {
  std::string text = "\n";
  if (e.peaks) {
    const std::string& device = e.peaks->device;
    const std::string unnamed = e.devices == 1 ? "one device" : grouped(e.devices) + " devices";
    const std::string count = e.devices == 1 ? "" : grouped(e.devices) + " x ";
    text += "on " + (device.empty() ? unnamed : count + bold(printable(device))) + ": " +
            si(e.peaks->peak(e.dtype)->value) + "FLOP/s " + std::string{to_string(e.dtype)} +
            (e.devices == 1 ? " " : " each ") + dim("(" + brief(e.peaks->source) + ")") + "\n";
  }
  if (e.rates.ideal_step_seconds)
    text += "ideal step time " + duration(*e.rates.ideal_step_seconds) + "\n";
  if (e.rates.mfu)
    text += bold("MFU " + percent(*e.rates.mfu)) + "  HFU " + percent(*e.rates.hfu) + "\n";
  if (e.rates.step_seconds) {
    text += fixed(*e.rates.tflops_per_device, 1) + " TFLOP/s per device, " +
            duration(*e.rates.step_seconds) + " per step, " +
            grouped(static_cast<WideInt>(*e.rates.tokens_per_second)) + " tokens/s\n";
  }
  if (e.sequences < e.devices) {
    text += grouped(e.devices) + " devices share " + grouped(e.sequences) +
            (e.sequences == 1 ? " sequence" : " sequences") +
            ": the times hold if the model is split over them (--batch: sequences of a step)\n";
  }
  return text;
}

std::string plan_text(const Estimate& e) {
  const TrainingPlan& plan = *e.plan;
  std::string text = si(plan.tokens) + " tokens: " + si(plan.model_flops) + "FLOPs";
  if (plan.ideal) text += ", " + duration(*plan.ideal) + " at peak";
  if (plan.seconds && plan.mfu) {
    text += "; " + bold(duration(*plan.seconds)) + " at MFU " + percent(*plan.mfu) + ", " +
            grouped(static_cast<WideInt>(plan.device_seconds->value / 3600 + 0.5)) +
            " device hours";
  }
  return text + "\n";
}

}  // namespace

std::string estimate_text(const Estimate& e) {
  std::string text = heading(e) + components(e);
  text += "  " + si(static_cast<double>(e.model_flops.value) / static_cast<double>(e.tokens)) +
          "FLOPs per token; " + si_flops(e.hardware_flops) + "FLOPs executed";
  if (e.recompute.value > 0) text += ", " + si_flops(e.recompute) + " of them recomputed";
  text += "\n" + rates(e);
  if (e.plan) text += plan_text(e);
  if (e.published) {
    text += dim(printable(e.published->text)) + "\n";
    for (const std::string_view link : e.published->links())
      text += dim("  " + std::string{link}) + "\n";
  }
  for (const std::string& note : e.notes) text += paragraph(warning("note: "), printable(note));
  if (!e.peaks)
    text += dim("add --device NAME for the time at peak, and --step-time SECONDS for MFU") + "\n";
  return text;
}

}  // namespace flopmeter
