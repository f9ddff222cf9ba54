// SPDX-License-Identifier: Apache-2.0
#include "braille_plot.h"
#include "live_ranks.h"

#include <flopmeter/core/device_bound.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/frame.h>
#include <flopmeter/report/terminal_text.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace flopmeter {
namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t usual_plot_rows = 9;
constexpr std::size_t least_plot_rows = 5;
constexpr std::size_t most_findings = 3;
constexpr std::size_t any_number = 1000;
constexpr std::size_t least_columns = 24;
constexpr std::size_t wide_columns = 72;  // from which on all words are shown

class Painter {
 public:
  Painter(const FrameContent& content, FrameSize size, bool color)
      : content_(content), size_(size), color_(color), all_(content.totals.all()) {}

  Lines draw();

 private:
  [[nodiscard]] std::string paint(std::string_view text, std::string_view code) const {
    if (!color_ || text.empty()) return std::string{text};
    return std::string{"\x1b["}.append(code).append("m").append(text).append("\x1b[0m");
  }
  [[nodiscard]] std::string dim(std::string_view text) const { return paint(text, "2"); }
  [[nodiscard]] std::string bold(std::string_view text) const { return paint(text, "1"); }

  [[nodiscard]] Lines head() const;
  [[nodiscard]] Lines plot(std::size_t rows) const;
  [[nodiscard]] Lines phases() const;
  [[nodiscard]] Lines ranks() const;
  [[nodiscard]] Lines findings(std::size_t most) const;

  const FrameContent& content_;
  FrameSize size_;
  bool color_;
  StepTotals all_;
};

/// Which of two holds the others up: one that is judged so, then the one with less speed.
bool slower(const RankScore& a, const RankScore& b) {
  if (a.verdict != b.verdict) return a.verdict > b.verdict;
  return a.relative.value_or(1) < b.relative.value_or(1);
}

std::string age_text(double seconds) {
  if (seconds < 2) return "live";
  return "last step " +
         (seconds < 120 ? fixed(std::floor(seconds), 0) + " s" : duration({seconds})) + " ago";
}

Lines Painter::head() const {
  const auto& run = content_.run;
  std::string title = "flopmeter";
  for (const std::string* part : {&run.model, &run.peaks.device}) {
    if (!part->empty()) title += " · " + printable(*part);
  }
  const std::string age =
      all_.steps > 0 ? age_text(content_.now_unix - all_.last_unix) : "waiting for the first step";
  const std::size_t room = size_.columns > cells(age) + 2 ? size_.columns - cells(age) - 2 : 0;
  Lines lines;
  if (room >= 20) {
    lines.push_back(dim(padded(title, room) + "  " + age));
  } else {
    lines.push_back(dim(cut(title, size_.columns)));
  }
  if (!(all_.steps > 0)) return lines;

  const auto mfu = all_.mfu();
  std::string line =
      paint("MFU " + (mfu ? percent(*mfu) : "n/a"), mfu.value_or(0) > 1 ? "1;31" : "1");
  std::size_t used = cells("MFU " + (mfu ? percent(*mfu) : "n/a"));
  std::vector<std::string> facts;
  if (mfu.value_or(0) > 1) facts.emplace_back("above the peak");
  facts.push_back(all_.steps == 1 ? "last step" : "last " + std::to_string(all_.steps) + " steps");
  if (const auto bound = device_bound(all_.device); !bound.empty()) facts.emplace_back(bound);
  facts.push_back("step " + grouped(all_.last_step) +
                  (run.total_steps ? " of " + grouped(*run.total_steps) : ""));
  if (const auto left = all_.remaining(run.total_steps); left && left->value > 0)
    facts.push_back("ETA " + duration(*left));
  if (const auto& whole = content_.whole; whole && whole->mfu() && whole->steps > all_.steps)
    facts.push_back("run MFU " + percent(*whole->mfu()));
  if (const auto tokens = all_.tokens_per_second()) {
    facts.push_back(grouped(static_cast<WideInt>(std::llround(*tokens))) + " tokens/s");
  } else if (const auto samples = all_.samples_per_second()) {
    facts.push_back(si(*samples) + " samples/s");
  }
  facts.push_back(duration(*all_.step_seconds()) + " per step");
  if (const auto flops = all_.flops_per_second()) facts.push_back(si(*flops) + "FLOP/s per device");
  if (const auto hfu = all_.hfu()) facts.push_back("HFU " + percent(*hfu));
  for (const std::string& fact : facts) {
    if (used + 2 + cells(fact) > size_.columns) continue;
    used += 2 + cells(fact);
    line += "  " + fact;
  }
  lines.push_back(line);
  return lines;
}

/// Without the decimals of a round number: "4 G".
std::string rounded_si(double value) {
  std::string text = si(value);
  const std::size_t dot = text.find('.');
  const std::size_t end = std::min(text.find(' '), text.size());
  if (dot != std::string::npos && text.find_first_not_of('0', dot + 1) >= end)
    text.erase(dot, end - dot);
  return text;
}

std::string curve_name(const Field& field) {
  if (field.name == "mfu") return "MFU";
  if (field.name == "tflops_per_device") return "model FLOP/s per device";
  if (field.name == "step_seconds") return "step time";
  return std::string{field.help};
}

std::string tick(const Field& field, double value) {
  switch (field.unit) {
    case Unit::ratio:
      // As many decimals as it takes to print the tick as it is: half of 5 % is 2.5 %.
      return std::abs(100 * value - std::round(100 * value)) > 1e-6 ? percent(value)
                                                                    : fixed(100 * value, 0) + " %";
    case Unit::seconds:
      return value > 0 ? duration({value}) : "0";
    case Unit::teraflops_per_second:
      return value > 0 ? rounded_si(value * 1e12) + "FLOP/s" : "0";
    default:
      return si(value);
  }
}

Lines Painter::plot(std::size_t rows) const {
  const Timeline& timeline = content_.totals.timeline;
  std::vector<PlotPoint> points;
  std::size_t curve = 0;
  for (; curve < timeline.curves().size() && points.empty(); ++curve) {
    for (const auto& [index, bucket] : timeline.buckets()) {
      const ValueSpread& spread = bucket.spreads[curve];
      if (const auto mean = spread.mean())
        points.push_back({static_cast<double>(bucket.first_step), spread.low, *mean, spread.high});
    }
  }
  if (points.empty()) return {};
  const Field& field = *timeline.curves()[curve - 1];
  double highest = 0;
  for (const PlotPoint& point : points) highest = std::max(highest, point.high);
  const double top = round_top(highest);
  const std::vector<std::string> labels = {tick(field, top), tick(field, top / 2), tick(field, 0)};
  std::size_t margin = 0;
  for (const std::string& label : labels) margin = std::max(margin, cells(label));
  if (size_.columns < margin + 12) return {};
  const std::size_t columns = size_.columns - margin - 2;
  Lines lines;
  const auto picture = braille_plot(points, top, columns, rows);
  for (std::size_t i = 0; i < rows; ++i) {
    std::string label;
    if (i == 0) label = labels[0];
    if (i == rows / 2 && rows > 2) label = labels[1];
    if (i == rows - 1) label = labels[2];
    lines.push_back(dim(padded_left(label, margin) + (label.empty() ? " │" : " ┤")) +
                    paint(picture[i], "36"));
  }
  const auto& buckets = timeline.buckets();
  const std::string first = "step " + grouped(buckets.begin()->second.first_step);
  const std::string last = grouped(buckets.rbegin()->second.last_step);
  const std::string name = curve_name(field);
  std::string below(margin + 2, ' ');
  const std::size_t ends = cells(first) + cells(last);
  if (columns > ends + cells(name) + 4) {
    const std::size_t gap = columns - ends - cells(name);
    below += first + std::string(gap / 2, ' ') + name + std::string(gap - gap / 2, ' ') + last;
  } else if (columns > ends) {
    below += first + std::string(columns - ends, ' ') + last;
  }
  lines.push_back(dim(below));
  return lines;
}

Lines Painter::phases() const {
  constexpr std::array<std::string_view, phase_count> codes = {
      "31", "34", "94", "35", "33", "90", "36", "32", "90"};
  constexpr std::size_t name_width = 13;
  constexpr std::size_t number_width = 17;
  Lines lines;
  if (!(all_.seconds > 0)) return lines;
  std::vector<double> shares;
  for (const auto& phase : all_.phases)
    shares.push_back(std::min(phase.value_or(0) / all_.seconds, 1.0));  // longer: a damaged record
  const std::vector<std::string> texts = percents(shares);
  for (std::size_t i = 0; i < phase_count; ++i) {
    if (!all_.phases[i]) continue;
    const std::string numbers =
        padded_left(texts[i], 8) +
        padded_left(duration({*all_.phases[i] / static_cast<double>(all_.steps)}), 9);
    const std::size_t width =
        std::min<std::size_t>(size_.columns > name_width + number_width + 3
                                  ? size_.columns - name_width - number_width - 1
                                  : 0,
                              60);
    const std::string bar = block_bar(shares[i], width);
    lines.push_back(
        padded(to_string(static_cast<Phase>(i)), std::min(name_width, size_.columns)) +
        (width > 0 ? " " + paint(bar, codes[i]) + std::string(width - cells(bar), ' ') : "") +
        (size_.columns > name_width + number_width ? numbers : ""));
  }
  return lines;
}

Lines Painter::ranks() const {
  const auto& ranks = content_.totals.ranks;
  if (ranks.size() < 2) return {};
  const std::vector<RankScore> scores =
      find_stragglers(live_windows(content_.run, ranks), live_straggler_options).ranks;
  const auto slowest = std::min_element(scores.begin(), scores.end(), slower);
  ValueSpread mfu;
  std::int64_t silent = 0;
  for (const auto& [number, recent] : ranks) {
    const StepTotals rank = recent.totals();
    if (const auto value = rank.mfu()) mfu.add(*value);
    // Compared with the other ranks, not the clock: a finished run is not silent.
    const double step = rank.step_seconds().value_or(Seconds{}).value;
    if (all_.last_unix - rank.last_unix > std::max(30.0, 10 * step)) ++silent;
  }
  std::vector<std::string> facts = {grouped(static_cast<WideInt>(ranks.size())) + " ranks"};
  if (silent > 0) facts.push_back(grouped(silent) + " silent");
  if (slowest->verdict == Verdict::late) {
    facts.push_back("latest " + std::to_string(slowest->rank) + " (others wait " +
                    duration({slowest->lead.value_or(0)}) + " per step)");
  } else if (slowest->relative) {
    facts.push_back("slowest " + std::to_string(slowest->rank) + " (−" +
                    percent(1 - *slowest->relative) + " FLOP/s)");
  }
  if (mfu.count > 0) facts.push_back("MFU " + percent(mfu.low) + " to " + percent(mfu.high));
  std::string line;
  for (const std::string& fact : facts) {
    if (cells(line) + cells(fact) + 3 > size_.columns) continue;
    line += (line.empty() ? "" : " · ") + fact;
  }

  // Eight heights from 20 % faster to 20 % slower than the median; a cell shows its slowest rank.
  constexpr std::array<std::string_view, 8> blocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t each = (scores.size() + size_.columns - 1) / size_.columns;
  std::string strip;
  for (std::size_t i = 0; i < scores.size(); i += each) {
    const RankScore& worst = *std::min_element(
        scores.begin() + static_cast<std::ptrdiff_t>(i),
        scores.begin() + static_cast<std::ptrdiff_t>(std::min(i + each, scores.size())),
        slower);
    const double off = std::clamp((1.2 - worst.relative.value_or(1)) / 0.4, 0.0, 1.0);
    strip += paint(blocks[static_cast<std::size_t>(std::lround(off * 7))],
                   worst.verdict == Verdict::normal ? "32" : "31");
  }
  return {line, strip};
}

/// Each with its recommendation in full if `most` lines hold that, else with one line of it at
/// least.
Lines Painter::findings(std::size_t most) const {
  Lines lines;
  const std::size_t shown = std::min({content_.findings.size(), most_findings, most / 2});
  const std::string of =
      content_.finding_steps > 0 && size_.columns >= wide_columns
          ? " of the last " + grouped(static_cast<WideInt>(content_.finding_steps)) + " steps"
          : "";
  for (std::size_t i = 0; i < shown; ++i) {
    const Finding& finding = content_.findings[i];
    const std::string cost = finding.share ? "saves " + percent(*finding.share) + of + "  " : "";
    const std::size_t room = size_.columns - std::min(size_.columns, cells(cost) + 2);
    lines.push_back(paint("▲ ", "33") + paint(cost, "1;31") +
                    bold(cut(printable(finding.summary), room)));
    const std::size_t width = size_.columns - 2;
    const std::size_t free = most - lines.size() - 2 * (shown - i - 1);
    Lines recommendation = wrapped(printable("try: " + finding.recommendation), width);
    if (recommendation.size() > free) {
      recommendation[free - 1] = cut(recommendation[free - 1] + " " + recommendation[free], width);
      recommendation.resize(free);
    }
    for (const std::string& line : recommendation) lines.push_back("  " + line);
  }
  return lines;
}

Lines Painter::draw() {
  const auto mfu = all_.mfu();
  if (size_.columns < least_columns)
    return {cut("MFU " + (mfu ? percent(*mfu) : "n/a"), size_.columns)};
  Lines lines = head();
  const Lines under_phases = phases();
  const Lines under_ranks = ranks();
  const auto part = [](const Lines& some) { return some.empty() ? 0 : some.size() + 1; };
  std::size_t plot_rows = usual_plot_rows;
  std::size_t finding_rows = any_number;
  if (size_.rows > 0) {
    const std::size_t fixed_rows = lines.size() + part(under_phases) + part(under_ranks) + 2;
    const std::size_t wanted = findings(any_number).size();
    const std::size_t free = size_.rows > fixed_rows ? size_.rows - fixed_rows : 0;
    finding_rows = free > least_plot_rows + 1 ? std::min(wanted, free - least_plot_rows - 1) : 0;
    if (finding_rows < 2) finding_rows = 0;
    plot_rows = free - std::min(free, finding_rows == 0 ? 0 : finding_rows + 1);
    plot_rows = std::min<std::size_t>(plot_rows, 20);
  }
  for (const Lines& some : {plot_rows >= 2 ? plot(plot_rows) : Lines{},
                            under_phases,
                            under_ranks,
                            findings(finding_rows)}) {
    if (some.empty()) continue;
    lines.emplace_back();
    std::copy(some.begin(), some.end(), std::back_inserter(lines));
  }
  if (size_.rows > 0 && lines.size() > size_.rows) lines.resize(size_.rows);
  return lines;
}

}  // namespace

std::vector<std::string> draw_frame(const FrameContent& content, FrameSize size, bool color) {
  return Painter{content, size, color}.draw();
}

}  // namespace flopmeter
