// SPDX-License-Identifier: Apache-2.0
// The device's kernels in traces of torch.profiler: for each kernel the launch call on the host and
// the interval on its stream, linked to the operator that launched it.
#include "timeline.h"

#include <libkineto.h>
#include <output_base.h>
#include <torch/csrc/profiler/standalone/privateuse1_profiler.h>
#include <unistd.h>

#include <chrono>

namespace simgpu {
namespace {

using libkineto::ActivityType;
using libkineto::GenericTraceActivity;

/// Difference of the trace's clock (since 1970) and the device's.
Time to_wall_clock() {
  return std::chrono::system_clock::now().time_since_epoch().count() - now();
}

class Session final : public libkineto::IActivityProfilerSession {
 public:
  void start() override { first_ = device().log_size(); }
  void stop() override { last_ = device().log_size(); }
  std::vector<std::string> errors() override { return {}; }
  void processTrace(libkineto::ActivityLogger& logger) override { processTrace(logger, {}, 0, 0); }
  void processTrace(libkineto::ActivityLogger& logger,
                    libkineto::getLinkedActivityCallback linked,
                    int64_t,
                    int64_t) override {
    const Time offset = to_wall_clock();
    auto intervals = device().intervals(first_);
    intervals.resize(std::min(intervals.size(), last_ - first_));
    for (const Interval& k : intervals) {
      ++correlation_;
      const auto* source =
          linked && k.external_id != 0 ? linked(static_cast<int32_t>(k.external_id)) : nullptr;
      const bool copies = k.kind == Kind::host_to_device || k.kind == Kind::device_to_host;
      auto& call = add(ActivityType::PRIVATEUSE1_RUNTIME,
                       k.graph != 0 ? "simgpuGraphLaunch" : "simgpuLaunchKernel",
                       source);
      call.startTime = offset + k.call;
      call.endTime = offset + k.enqueued;
      call.device = getpid();
      call.resource = call.threadId = static_cast<int32_t>(k.thread);
      call.flow.start = true;
      auto& kernel =
          add(copies ? ActivityType::GPU_MEMCPY : ActivityType::CONCURRENT_KERNEL, k.name, source);
      kernel.startTime = offset + k.start;
      kernel.endTime = offset + k.end;
      kernel.device = 0;
      kernel.resource = static_cast<int32_t>(k.stream);
      kernel.addMetadata("device", 0);
      kernel.addMetadata("stream", k.stream);
      if (copies) kernel.addMetadata("bytes", static_cast<int64_t>(k.bytes));
      call.log(logger);
      kernel.log(logger);
    }
  }
  std::unique_ptr<libkineto::DeviceInfo> getDeviceInfo() override {
    return std::make_unique<libkineto::DeviceInfo>(
        libkineto::DeviceInfo{0, 0, "simgpu", "simgpu 0"});
  }
  std::vector<libkineto::ResourceInfo> getResourceInfos() override { return {}; }
  std::unique_ptr<libkineto::CpuTraceBuffer> getTraceBuffer() override {
    return std::move(buffer_);
  }

  void pushCorrelationId(uint64_t id) override {
    pushed().push_back(std::exchange(external_id(), id));
  }
  void popCorrelationId() override {
    if (pushed().empty()) return;
    external_id() = pushed().back();
    pushed().pop_back();
  }

 private:
  static std::vector<uint64_t>& pushed() {
    thread_local std::vector<uint64_t> ids;
    return ids;
  }
  GenericTraceActivity& add(ActivityType type,
                            const std::string& name,
                            const libkineto::ITraceActivity* source) {
    buffer_->emplace_activity(buffer_->span, type, name);
    GenericTraceActivity& activity = *buffer_->activities.back();
    activity.id = correlation_;
    activity.linked = source;
    activity.flow.id = static_cast<uint32_t>(correlation_);
    activity.flow.type = libkineto::kLinkAsyncCpuGpu;
    activity.addMetadata("correlation", correlation_);
    return activity;
  }

  size_t first_ = 0, last_ = 0;
  int32_t correlation_ = 0;
  std::unique_ptr<libkineto::CpuTraceBuffer> buffer_ =
      std::make_unique<libkineto::CpuTraceBuffer>();
};

class Profiler final : public libkineto::IActivityProfiler {
 public:
  const std::string& name() const override { return name_; }
  const std::set<ActivityType>& availableActivities() const override { return types_; }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      const std::set<ActivityType>&, const libkineto::Config&) override {
    return std::make_unique<Session>();
  }
  std::unique_ptr<libkineto::IActivityProfilerSession> configure(
      int64_t, int64_t, const std::set<ActivityType>&, const libkineto::Config&) override {
    return std::make_unique<Session>();
  }

 private:
  std::string name_ = "simgpu";
  std::set<ActivityType> types_{
      ActivityType::PRIVATEUSE1_RUNTIME, ActivityType::CONCURRENT_KERNEL, ActivityType::GPU_MEMCPY};
};
REGISTER_PRIVATEUSE1_PROFILER(Profiler);

}  // namespace
}  // namespace simgpu
