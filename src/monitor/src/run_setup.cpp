// SPDX-License-Identifier: Apache-2.0
#include "run_setup.h"

#include <flopmeter/runstore/run_layout.h>

#include <unistd.h>

#include <thread>

namespace flopmeter {

Connections with_options(const Options& options, Connections connections) {
  World& world = connections.world;
  const auto take = [](int& size, int option) {
    if (option > 0) size = option;
  };
  if (options.broadcast && connections.exchange != nullptr && connections.exchange->rank() != 0) {
    connections.source = nullptr;  // rank 0 measures
    connections.estimator = nullptr;
  }
  take(world.data_parallel, options.data_parallel);
  take(world.tensor_parallel, options.tensor_parallel);
  take(world.pipeline_parallel, options.pipeline_parallel);
  take(world.context_parallel, options.context_parallel);
  take(world.expert_parallel, options.expert_parallel);
  return connections;
}

RunContext describe_run(const Options& options,
                        const Connections& connections,
                        std::string_view convention,
                        double now_unix) {
  const auto set = [](int size) { return size > 0 ? std::optional{size} : std::nullopt; };
  const World& world = connections.world;
  RunContext run;
  run.metadata = {.run_id = options.run_id,
                  .stamp = {},
                  .model = options.model,
                  .convention = std::string{convention},
                  .mode = std::string{to_string(options.mode)},
                  .peaks = connections.peaks,
                  .world_size = world.size,
                  .data_parallel = data_parallel_of(world),
                  .tensor_parallel = set(world.tensor_parallel),
                  .pipeline_parallel = set(world.pipeline_parallel),
                  .pipeline_stride = set(world.pipeline_stride),
                  .context_parallel = set(world.context_parallel),
                  .expert_parallel = set(world.expert_parallel),
                  .devices_per_rank = connections.devices,
                  .processors = set(static_cast<int>(std::thread::hardware_concurrency())),
                  .log_interval = options.log_interval,
                  .total_steps = set(options.total_steps),
                  .model_source = connections.model_source};
  run.directory = choose_run_directory(options.directory, world.size, environ, now_unix);
  run.rank = world.rank;
  run.local_rank = world.local_rank;
  run.host = world.host;
  run.equal_ranks =
      world.pipeline_parallel == 1 && world.expert_parallel == 1 && !connections.replicated;
  if (world.pipeline_parallel > 1) run.role = run.metadata.role(world.rank);
  run.breakdown = options.breakdown;
  run.first_row = options.first_row;
  run.memory = options.memory;
  run.zero_unmeasured = options.zero_unmeasured;
  run.disk_limit_bytes = std::int64_t{options.disk_limit_mib} << 20U;
  return run;
}

std::vector<std::string> sink_specifications(const Options& options, const RunContext& run) {
  std::vector<std::string> wanted = {"jsonl"};
  if (run.rank == 0) {
    if (options.log_format != "json")
      wanted.insert(wanted.end(), {"perf_metrics", "perf_realtime"});
    if (options.log_format != "text") wanted.emplace_back("perf_summary");
    if (options.console) wanted.emplace_back("console");
    if (options.csv) wanted.emplace_back("csv");
    if (options.tensorboard) {
      wanted.push_back("tensorboard:" + (options.tensorboard_dir.empty()
                                             ? RunLayout{run}.tensorboard()
                                             : options.tensorboard_dir + "/flopmeter"));
    }
  }
  if (!options.prometheus_file.empty()) wanted.push_back("prometheus:" + options.prometheus_file);
  if (!options.metrics_address.empty()) {
    wanted.push_back("metrics_endpoint:" + options.metrics_address +
                     (options.metrics_token.empty() ? "" : "#" + options.metrics_token));
  }
  wanted.insert(wanted.end(), options.sinks.begin(), options.sinks.end());
  return wanted;
}

}  // namespace flopmeter
