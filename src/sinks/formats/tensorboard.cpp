// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard event files: scalars once per log interval, and a layout for the custom-scalars page.
// Each start opens a new file, because readers ignore what follows an incomplete record.
#include "../src/bounded_file.h"
#include "../src/interval_series.h"
#include "../src/tfevents.h"

#include <flopmeter/core/text.h>
#include <flopmeter/runstore/run_layout.h>

#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <vector>

namespace flopmeter {
namespace {

/// Layout{category{title, chart{title, multiline{tag}}}} of the custom-scalars plug-in.
ProtoMessage layout(bool breakdown) {
  ProtoMessage category;
  category.text(1, "flopmeter");
  const auto chart = [&category](std::string_view title,
                                 std::initializer_list<std::string_view> patterns) {
    ProtoMessage lines;
    for (const auto pattern : patterns) lines.text(1, pattern);
    category.message(2, ProtoMessage{}.text(1, title).message(2, lines));
  };
  chart("MFU (%)", {"^perf/mfu_percent$"});
  chart("TFLOP/s per device", {"^performance/tflops_per_gpu$"});
  chart("Tokens per second", {"^performance/tokens_per_second$"});
  chart("Step time (s)", {"^perf/step_time$"});
  chart("Memory (GB)", {"^memory/current_gb$", "^memory/peak_gb$"});
  if (breakdown) chart("Phases (s)", {"^phases/.*"});
  return ProtoMessage{}.message(2, category);
}

std::string file_name(const std::string& directory) {
  static constinit std::atomic<int> counter{0};
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  for (char& c : host) {
    if (c == '/') c = '_';
  }
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::string seconds = std::to_string(now);
  seconds.insert(0, seconds.size() < 10 ? 10 - seconds.size() : 0, '0');
  return directory + "/events.out.tfevents." + seconds + "." + host.data() + "." +
         std::to_string(getpid()) + "." + std::to_string(counter.fetch_add(1));
}

class TensorboardSink final : public IntervalFileSink {
 public:
  TensorboardSink(const RunContext& run, const std::string& directory)
      : IntervalFileSink(
            run, file_name(directory), OutputFile::Name::fresh, start_of_file(run.breakdown)),
        breakdown_(run.breakdown),
        memory_(run.memory) {}

 private:
  static std::string start_of_file(bool breakdown) {
    const double now =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const ProtoMessage plugin = ProtoMessage{}.text(1, "custom_scalars");
    const ProtoMessage tensor =
        ProtoMessage{}.number(1, 7).message(2, {}).text(8, layout(breakdown).bytes());
    const ProtoMessage value = ProtoMessage{}
                                   .text(1, "custom_scalars__config__")
                                   .message(8, tensor)
                                   .message(9, ProtoMessage{}.message(1, plugin).number(4, 2));
    return tfevents_header(now) + tfevents_event(now, 0, ProtoMessage{}.message(1, value));
  }

  void add(ProtoMessage& summary,
           std::size_t index,
           std::string_view name,
           std::string_view help,
           std::optional<double> number) {
    if (!number) return;
    ProtoMessage value;
    value.text(1, name).real32(2, static_cast<float>(*number));
    if (!described_[index]) {  // the first value of a tag carries its description
      described_[index] = true;
      const ProtoMessage plugin = ProtoMessage{}.text(1, "scalars");
      value.message(9, ProtoMessage{}.message(1, plugin).text(2, name).text(3, help).number(4, 1));
    }
    summary.message(1, value);
  }

  std::string text_of(const IntervalRow& row) override {
    ProtoMessage summary;
    for (std::size_t i = 0; i < std::size(interval_series); ++i) {
      const auto& [series, read] = interval_series[i];
      if (memory_ || !series.name.starts_with("memory/"))
        add(summary, i, series.name, series.help, read(row));
    }
    const auto fields = step_fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const Field& field = fields[i];
      if (field.tensorboard.empty() || (!breakdown_ && field.group.ends_with("phases"))) continue;
      add(summary,
          std::size(interval_series) + i,
          field.tensorboard,
          field.help,
          row.means.mean(i));
    }
    return tfevents_event(row.last.time_unix, row.last.step, summary);
  }

  bool breakdown_;
  bool memory_;
  std::vector<bool> described_ =
      std::vector<bool>(std::size(interval_series) + step_fields().size());
};

Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  const std::string directory = target.empty() ? RunLayout{run}.tensorboard() : std::string{target};
  return std::unique_ptr<Sink>{std::make_unique<TensorboardSink>(run, directory)};
}

}  // namespace

extern constinit const SinkPlugin sink_tensorboard{
    "tensorboard", "TensorBoard event files in a directory", make};

}  // namespace flopmeter
