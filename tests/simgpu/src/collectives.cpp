// SPDX-License-Identifier: Apache-2.0
// A c10d backend whose collectives run on a separate communication stream, as in NCCL.
//
// In a group of one process a collective takes as long as among `simulated_world` ranks. In a
// larger group it starts when the last rank is ready: the ranks exchange these times, and small or
// wanted values, through Gloo, so here the host waits until all ranks have called.
#include "costs.h"
#include "values.h"

#include <ATen/ops/tensor.h>
#include <c10/core/StreamGuard.h>
#include <pybind11/chrono.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/utils/pybind.h>

namespace simgpu {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using c10d::OpType;
using WorkPointer = c10::intrusive_ptr<c10d::Work>;

constexpr auto on_device = c10::DeviceType::PrivateUse1;
constexpr double small_bytes = 64 * 1024;  // exchanged even with values off: DDP compares shapes

class CollectiveWork final : public c10d::Work {
 public:
  CollectiveWork(int rank, OpType type, int64_t stream, Tensors outputs, bool host_waits)
      : Work(rank, type), outputs_(std::move(outputs)), host_waits_(host_waits) {
    device().record(done_, stream);
    future_ = c10::make_intrusive<c10::ivalue::Future>(
        c10::ListType::create(c10::TensorType::get()), std::vector<c10::Device>{{on_device, 0}});
    const c10::StreamGuard guard(
        c10::Stream(c10::Stream::UNSAFE, c10::Device(on_device, 0), stream));
    future_->markCompleted(c10::IValue(outputs_));
  }
  bool isCompleted() override { return device().query(done_); }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds) override {
    synchronize();
    if (host_waits_) device().synchronize(done_);
    return true;
  }
  void synchronize() override { device().block(done_, current_stream()); }
  Tensors result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  Event done_;
  Tensors outputs_;
  bool host_waits_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

double total_bytes(const Tensors& tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) bytes += bytes_of(tensor);
  return bytes;
}
Tensors aliases(const Tensors& tensors) {
  Tensors result;
  for (const Tensor& tensor : tensors) result.push_back(cpu_alias(tensor));
  return result;
}
class Backend final : public c10d::Backend {
 public:
  Backend(int rank, int size, c10::intrusive_ptr<c10d::Backend> gloo)
      : c10d::Backend(rank, size), gloo_(std::move(gloo)), stream_(device().new_stream()) {}
  const std::string getBackendName() const override { return "simccl"; }
  void setSequenceNumberForGroup() override {}
  uint64_t getSequenceNumberForGroup() override { return sequence_; }

  WorkPointer allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override {
    return run(
        OpType::ALLREDUCE, "all_reduce", 2 * share() * total_bytes(tensors), tensors, [=, this] {
          auto host = aliases(tensors);
          if (size_ > 1) gloo_->allreduce(host, options)->wait();
        });
  }
  WorkPointer broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override {
    return run(OpType::BROADCAST, "broadcast", total_bytes(tensors), tensors, [=, this] {
      auto host = aliases(tensors);
      if (size_ > 1) gloo_->broadcast(host, options)->wait();
    });
  }
  WorkPointer allgather(std::vector<Tensors>& outputs,
                        Tensors& inputs,
                        const c10d::AllgatherOptions& options) override {
    return run(OpType::ALLGATHER,
               "all_gather",
               share() * ranks() * total_bytes(inputs),
               outputs[0],
               [=, this] {
                 std::vector<Tensors> to{aliases(outputs[0])};
                 Tensors from = aliases(inputs);
                 gather(to, from, options);
               });
  }
  WorkPointer _allgather_base(Tensor& output,
                              Tensor& input,
                              const c10d::AllgatherOptions& options) override {
    return run(OpType::_ALLGATHER_BASE,
               "all_gather",
               share() * ranks() * bytes_of(input),
               {output},
               [=, this] {
                 std::vector<Tensors> to{cpu_alias(output).chunk(size_)};
                 Tensors from{cpu_alias(input)};
                 gather(to, from, options);
               });
  }
  WorkPointer _reduce_scatter_base(Tensor& output,
                                   Tensor& input,
                                   const c10d::ReduceScatterOptions& options) override {
    return run(OpType::_REDUCE_SCATTER_BASE,
               "reduce_scatter",
               share() * bytes_of(input),
               {output},
               [=, this] {
                 Tensors sum{cpu_alias(input).clone()};
                 if (size_ > 1) gloo_->allreduce(sum, {.reduceOp = options.reduceOp})->wait();
                 cpu_alias(output).copy_(sum[0].chunk(size_)[static_cast<size_t>(rank_)]);
               });
  }
  WorkPointer barrier(const c10d::BarrierOptions&) override {
    return run(OpType::BARRIER, "barrier", 0, {}, {}, true);
  }

 private:
  double ranks() const { return size_ > 1 ? size_ : settings().simulated_world; }
  double share() const {
    return (ranks() - 1) / ranks();
  }  // of the data that crosses a link of the ring

  void gather(std::vector<Tensors>& to, Tensors& from, const c10d::AllgatherOptions& options) {
    if (size_ > 1) {
      gloo_->allgather(to, from, options)->wait();
    } else {
      to[0][0].view_as(from[0]).copy_(from[0]);
    }
  }
  /// When the last rank's communication stream is free; 0 in a group of one.
  Time agree_on_start() {
    if (size_ == 1) return 0;
    Tensors latest;
    {
      const StraightTo cpu(c10::DispatchKey::CPU);
      const Time own = std::max(now() + microseconds(settings().launch_us), device().tail(stream_));
      latest.push_back(at::tensor({own}, at::kLong));
    }
    gloo_->allreduce(latest, {.reduceOp = c10d::ReduceOp::MAX})->wait();
    return *latest[0].const_data_ptr<int64_t>();
  }
  WorkPointer run(OpType type,
                  const char* name,
                  double bus_bytes,
                  Tensors outputs,
                  std::function<void()> values,
                  bool host_waits = false) {
    const Settings& s = settings();
    ++sequence_;
    device().join(current_stream(), stream_);
    const Time start_at = agree_on_start();
    std::function<void()> exchange;
    if (values && (values_are_on() || total_bytes(outputs) <= small_bytes)) {
      exchange = [values = std::move(values)] {
        const StraightTo cpu(c10::DispatchKey::CPU);
        values();
      };
    }
    device().launch(stream_,
                    {.name = name,
                     .kind = Kind::communication,
                     .bytes = bus_bytes,
                     .duration = static_cast<Time>(bus_bytes / s.network_gbs),
                     .fixed = microseconds(s.network_us)},
                    std::move(exchange),
                    start_at);
    return c10::make_intrusive<CollectiveWork>(
        rank_, type, stream_, std::move(outputs), host_waits);
  }

  c10::intrusive_ptr<c10d::Backend> gloo_;
  int64_t stream_;
  uint64_t sequence_ = 0;
};

}  // namespace

void bind_collectives(pybind11::module_& module) {
  module.def("make_backend",
             [](int rank, int size, const c10::intrusive_ptr<c10d::Backend>& gloo)
                 -> c10::intrusive_ptr<c10d::Backend> {
               return c10::make_intrusive<Backend>(rank, size, gloo);
             });
}

}  // namespace simgpu
