// SPDX-License-Identifier: Apache-2.0
//
// FLOPs of a process from CPU counters. Events: Intel SDM volume 3, FP_ARITH_INST_RETIRED (0xC7; a
// fused multiply-add counts twice); AMD PPR family 17h and 19h, PMCx003 retired SSE and AVX FLOPs
// (counts operations).
#include <flopmeter/telemetry/clock.h>
#include <flopmeter/telemetry/hardware_counters.h>

#include <cpuid.h>
#include <dirent.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace flopmeter {
namespace {

/// One kind of instruction and its number of operations.
struct FlopEvent {
  std::uint64_t config = 0;
  double flops = 0;
};

constexpr std::array<FlopEvent, 8> intel_events = {{{0x01C7, 1},
                                                    {0x02C7, 1},
                                                    {0x04C7, 2},
                                                    {0x08C7, 4},
                                                    {0x10C7, 4},
                                                    {0x20C7, 8},
                                                    {0x40C7, 8},
                                                    {0x80C7, 16}}};
constexpr std::array<FlopEvent, 1> amd_events = {{{0x0F03, 1}}};

std::string cpu_vendor() {
  std::array<unsigned, 4> r{};
  if (__get_cpuid(0, r.data(), &r[1], &r[2], &r[3]) == 0) return {};
  std::string vendor(12, ' ');
  std::memcpy(vendor.data(), &r[1], 4);
  std::memcpy(vendor.data() + 4, &r[3], 4);
  std::memcpy(vendor.data() + 8, &r[2], 4);
  return vendor;
}

std::vector<pid_t> threads() {
  std::vector<pid_t> ids;
  DIR* tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return {0};
  while (const dirent* entry = readdir(tasks)) {  // NOLINT(concurrency-mt-unsafe)
    if (const long id = std::strtol(entry->d_name, nullptr, 10); id > 0)
      ids.push_back(static_cast<pid_t>(id));
  }
  closedir(tasks);
  return ids;
}

class PerfEventCounters final : public HardwareCounters {
 public:
  ~PerfEventCounters() override {
    for (const Open& counter : open_) close(counter.fd);
  }
  PerfEventCounters() = default;
  PerfEventCounters(const PerfEventCounters&) = delete;
  PerfEventCounters& operator=(const PerfEventCounters&) = delete;
  PerfEventCounters(PerfEventCounters&&) = delete;
  PerfEventCounters& operator=(PerfEventCounters&&) = delete;

  /// 0, or the errno of the first event that failed for the first thread.
  int open(std::span<const FlopEvent> events) {
    for (const pid_t thread : threads()) {
      for (const FlopEvent& event : events) {
        perf_event_attr attributes{};
        attributes.type = PERF_TYPE_RAW;
        attributes.size = sizeof attributes;
        attributes.config = event.config;
        attributes.inherit = 1;  // include threads that start later
        attributes.exclude_kernel = 1;
        attributes.exclude_hv = 1;
        attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
        const long fd =
            syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0) {
          open_.push_back({static_cast<int>(fd), event.flops});
        } else if (errno != ESRCH && open_.empty()) {
          return errno;
        }
      }
    }
    return open_.empty() ? ENOENT : 0;
  }

  std::optional<CounterReading> read() override {
    CounterReading sum{.ns = monotonic_nanoseconds()};
    for (const Open& counter : open_) {
      std::array<std::uint64_t, 3> value{};  // count, time enabled, time running
      if (::read(counter.fd, value.data(), sizeof value) != sizeof value) return std::nullopt;
      // The kernel multiplexes counters among events: scale to the full time.
      const double share =
          value[1] == 0 ? 1 : static_cast<double>(value[2]) / static_cast<double>(value[1]);
      if (share > 0) sum.flops += static_cast<double>(value[0]) / share * counter.flops;
    }
    return sum;
  }

 private:
  struct Open {
    int fd = -1;
    double flops = 0;
  };
  std::vector<Open> open_;
};

}  // namespace

Result<std::unique_ptr<HardwareCounters>> open_cpu_flop_counters() {
  const std::string vendor = cpu_vendor();
  std::span<const FlopEvent> events;
  if (vendor == "GenuineIntel") events = intel_events;
  if (vendor == "AuthenticAMD") events = amd_events;
  if (events.empty())
    return Error{ErrorCode::unsupported, "no hardware counters: unknown processor events"};
  auto counters = std::make_unique<PerfEventCounters>();
  switch (counters->open(events)) {
    case 0:
      return std::unique_ptr<HardwareCounters>{std::move(counters)};
    case EACCES:
    case EPERM:
      return Error{
          ErrorCode::unsupported,
          "no hardware counters: permission denied; set kernel.perf_event_paranoid to 2 or less"};
    case ENOSYS:
      return Error{ErrorCode::unsupported,
                   "no hardware counters: the kernel does not support perf_event_open"};
    case EMFILE:
      return Error{ErrorCode::unsupported, "no hardware counters: too many open files"};
    default:
      return Error{ErrorCode::unsupported,
                   "no hardware counters: not supported by the processor or the virtual machine"};
  }
}

}  // namespace flopmeter
