// SPDX-License-Identifier: Apache-2.0
//
// Traces for tests, written event by event.
#pragma once

#include <flopmeter/trace/trace_report.h>

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace flopmeter {

/// Collects events and wraps them in the file format.  Times are in microseconds.
class TraceText {
 public:
  TraceText& event(std::string_view category,
                   std::string_view name,
                   double start,
                   double duration,
                   std::string_view args = "",
                   std::string_view tid = "1") {
    if (!events_.empty()) events_ += ",\n  ";
    events_ += R"({"ph": "X", "cat": ")" + std::string{category} + R"(", "name": ")" +
               std::string{name} + R"(", "pid": 7, "tid": )" + std::string{tid} + R"(, "ts": )" +
               number(start) + R"(, "dur": )" + number(duration) + R"(, "args": {)" +
               std::string{args} + "}}";
    return *this;
  }
  TraceText& op(std::string_view name, double start, double duration, std::string_view args = "") {
    return event("cpu_op", name, start, duration, args);
  }
  TraceText& step(int number, double start, double duration) {
    return event("user_annotation", "ProfilerStep#" + std::to_string(number), start, duration);
  }
  /// A launch on the host and its kernel on device 0.
  TraceText& kernel(std::string_view name,
                    int correlation,
                    double launch,
                    double start,
                    double duration,
                    std::string_view more = "") {
    const std::string id = R"("correlation": )" + std::to_string(correlation);
    event("cuda_runtime", "cudaLaunchKernel", launch, 2, id);
    return device("kernel", name, start, duration, id + std::string{more});
  }
  TraceText& device(std::string_view category,
                    std::string_view name,
                    double start,
                    double duration,
                    const std::string& args = "",
                    int stream = 7) {
    const std::string where = R"("device": 0, "stream": )" + std::to_string(stream);
    return event(category, name, start, duration, where + (args.empty() ? "" : ", " + args), "7");
  }

  [[nodiscard]] const std::string& events() const { return events_; }
  [[nodiscard]] std::string array() const { return "[" + events_ + "]"; }
  [[nodiscard]] std::string object(std::string_view device = "NVIDIA A100-SXM4-80GB") const {
    return R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": ")" +
           std::string{device} + R"("}], "traceEvents": [)" + "\n  " + events_ +
           "\n], \"traceName\": \"t\"}";
  }
  /// The report of its first device.
  [[nodiscard]] DeviceReport report(const TraceReportOptions& options = {}) const {
    Result<Trace> trace = parse_trace(object());
    EXPECT_TRUE(trace.has_value());
    return report_devices(*trace, options).front();
  }

 private:
  static std::string number(double value) {
    const auto thousandths = static_cast<long long>(value * 1000 + 0.5);
    std::string text = std::to_string(thousandths / 1000) + ".";
    const std::string fraction = std::to_string(thousandths % 1000);
    return text + std::string(3 - fraction.size(), '0') + fraction;
  }

  std::string events_;
};

}  // namespace flopmeter
