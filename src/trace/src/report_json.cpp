// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/json_writer.h>
#include <flopmeter/trace/trace_report.h>

#include <map>

namespace flopmeter {
namespace {

Seconds seconds(TraceNs time) {
  return {static_cast<double>(time) / 1e9};
}

std::optional<Seconds> seconds(const std::optional<TraceNs>& time) {
  return time ? std::optional{seconds(*time)} : std::nullopt;
}

TraceNs of(const std::array<TraceNs, device_class_count>& times, DeviceClass kind) {
  return times[static_cast<std::size_t>(kind)];
}

void write_device(JsonWriter& json, const DeviceReport& report) {
  json.key("device").begin_object().field("name", report.device_name);
  json.key("peak_flops_per_second");
  if (!report.peaks) {
    json.null();
  } else {
    json.begin_object();
    for (std::size_t i = 0; i < dtype_count; ++i) {
      if (const auto peak = report.peaks->peaks[i])
        json.field(to_string(static_cast<Dtype>(i)), *peak);
    }
    json.end_object();
  }
  json.end_object();
}

void write_by_dtype(JsonWriter& json,
                    std::string_view name,
                    const std::array<WideInt, dtype_count>& flops) {
  json.key(name).begin_object();
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (flops[i] != 0) json.field(to_string(static_cast<Dtype>(i)), flops[i]);
  }
  json.end_object();
}

void write_split(JsonWriter& json, const TimeSplit& split) {
  json.field("window_seconds", seconds(split.window))
      .field("compute_seconds", seconds(of(split.total, DeviceClass::compute)))
      .field("communication_seconds", seconds(of(split.total, DeviceClass::communication)))
      .field("exposed_communication_seconds",
             seconds(of(split.exposed, DeviceClass::communication)))
      .field("memcpy_seconds", seconds(of(split.total, DeviceClass::memcpy)))
      .field("exposed_memcpy_seconds", seconds(of(split.exposed, DeviceClass::memcpy)))
      .field("exposed_memset_seconds", seconds(of(split.exposed, DeviceClass::memset)))
      .field("idle_seconds", seconds(split.idle));
}

void write_idle(JsonWriter& json, const IdleTimes& idle) {
  json.key("idle_by_cause").begin_object();
  for (std::size_t i = 0; i < idle_cause_count; ++i) {
    if (idle.intervals[i] == 0) continue;
    json.key(to_string(static_cast<IdleCause>(i)))
        .begin_object()
        .field("seconds", seconds(idle.time[i]))
        .field("intervals", idle.intervals[i])
        .end_object();
  }
  json.end_object();
}

void write_step(JsonWriter& json, const DeviceReport& report, const TraceStepReport& step) {
  const auto model = report.formula ? std::optional{report.formula->flops}
                     : step.flops   ? std::optional{step.flops->model}
                                    : std::nullopt;
  const auto hardware = step.flops ? std::optional{step.flops->hardware} : std::nullopt;
  const auto device = step.device ? std::optional{seconds(step.device->length())} : std::nullopt;
  json.begin_object()
      .field("name", step.name)
      .field("host_seconds", seconds(step.host.length()))
      .field("device_seconds", device)
      .field("model_flops", model)
      .field("hardware_flops", hardware)
      .field("mfu", step.mfu);
  if (report.device_index && step.device) {
    json.key("time").begin_object();
    write_split(json, step.split);
    json.end_object();
    write_idle(json, step.idle);
  }
  json.end_object();
}

void write_flops(JsonWriter& json, const std::optional<TraceFlops>& flops) {
  json.key("flops");
  if (!flops) {
    json.null();
    return;
  }
  json.begin_object()
      .field("model", flops->model)
      .field("optimizer", flops->optimizer)
      .field("hardware", flops->hardware);
  write_by_dtype(json, "by_dtype", flops->hardware_by_dtype);
  write_by_dtype(json, "model_by_dtype", flops->model_by_dtype);
  json.end_object();
}

void write_ops(JsonWriter& json, std::string_view name, const std::vector<UnsupportedOp>& ops) {
  json.key(name).begin_array();
  for (const UnsupportedOp& op : ops) {
    json.begin_object()
        .field("op", op.op)
        .field("calls", op.calls)
        .field("seconds", seconds(op.time))
        .end_object();
  }
  json.end_array();
}

void write_formula(JsonWriter& json, const std::optional<StepFormula>& formula) {
  json.key("formula");
  if (!formula) {
    json.null();
    return;
  }
  json.begin_object()
      .field("model", formula->model)
      .field("tokens", formula->tokens)
      .field("seq_len", formula->seq_len)
      .field("model_flops", formula->flops)
      .field("dtype", to_string(formula->dtype))
      .end_object();
}

/// One object per kind, with the sizes it occurs in.
void write_collectives(JsonWriter& json, const std::vector<CollectiveSummary>& collectives) {
  struct Total {
    std::int64_t count = 0;
    std::optional<Bytes> bytes = Bytes{};
    TraceNs time = 0;
    std::vector<const CollectiveSummary*> sizes;
  };
  std::map<std::string, Total> kinds;
  for (const CollectiveSummary& one : collectives) {
    Total& total = kinds[one.kind];
    total.count += one.count;
    total.time += one.time;
    if (!one.bytes) total.bytes.reset();
    if (total.bytes) *total.bytes += WideInt{one.count} * *one.bytes;
    total.sizes.push_back(&one);
  }
  json.key("collectives").begin_array();
  for (const auto& [kind, total] : kinds) {
    json.begin_object()
        .field("kind", kind)
        .field("count", total.count)
        .field("bytes", total.bytes)
        .field("seconds", seconds(total.time));
    json.key("sizes").begin_array();
    for (const CollectiveSummary* size : total.sizes) {
      json.begin_object()
          .field("bytes", size->bytes)
          .field("dtype", size->dtype)
          .field("group_size", size->group_size)
          .field("count", size->count)
          .field("seconds", seconds(size->time))
          .field("transfer_seconds", seconds(size->transfer))
          .field("bus_bytes_per_second", size->bus_bytes_per_second)
          .end_object();
    }
    json.end_array().end_object();
  }
  json.end_array();
}

void write_rank(JsonWriter& json, const DeviceReport& report) {
  json.begin_object()
      .field("rank", report.rank)
      .field("file", report.file)
      .field("world_size", report.world_size)
      .field("device_index", report.device_index);
  write_device(json, report);
  json.field("events", report.events)
      .field("skipped_events", report.skipped_events)
      .field("kernels", report.kernels)
      .field("memcpys", report.memcpys)
      .field("memsets", report.memsets)
      .field("carried_over_events", report.carried_over);
  json.key("steps").begin_array();
  for (const TraceStepReport& step : report.steps) write_step(json, report, step);
  json.end_array();
  json.key("time").begin_object();
  write_split(json, report.split);
  json.end_object();
  write_idle(json, report.idle);
  write_flops(json, report.flops);
  write_formula(json, report.formula);
  json.field("mfu", report.mfu).field("coverage", report.coverage);
  write_ops(json, "unsupported", report.unsupported);
  json.key("other_work").begin_array();
  for (const OtherWork& work : report.other_work) {
    json.begin_object()
        .field("category", work.category)
        .field("process", work.process)
        .field("events", work.events)
        .field("span_seconds", seconds(work.span))
        .field("busy_seconds", seconds(work.busy));
    write_ops(json, "longest", work.longest);
    json.end_object();
  }
  json.end_array();
  json.key("modules").begin_array();
  for (const ModuleTime& one : report.modules) {
    json.begin_object()
        .field("module", one.module)
        .field("forward_seconds", seconds(one.forward))
        .field("backward_seconds", seconds(one.backward))
        .field("hardware_flops", one.flops)
        .end_object();
  }
  json.end_array();
  write_collectives(json, report.collectives);
  json.field("collective_wait_seconds", seconds(report.collective_wait));
  json.key("notes").begin_array();
  for (const std::string& note : report.notes) json.value(note);
  json.end_array().end_object();
}

}  // namespace

void write_json_members(JsonWriter& json, const TraceReport& report) {
  json.field("schema", "flopmeter.trace/1");
  json.key("ranks").begin_array();
  for (const DeviceReport& rank : report.ranks) write_rank(json, rank);
  json.end_array().field("mfu", report.mfu);
  json.key("straggler");
  if (report.straggler) {
    json.begin_object()
        .field("rank", report.straggler->rank)
        .field("wait_seconds", report.straggler->wait)
        .end_object();
  } else {
    json.null();
  }
  json.key("notes").begin_array();
  for (const std::string& note : report.notes) json.value(note);
  json.end_array();
}

}  // namespace flopmeter
