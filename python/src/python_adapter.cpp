// SPDX-License-Identifier: Apache-2.0
//
// The adapter of a process without a compiled one: python/flopmeter/torch/fallback.py sees the
// calls through a dispatch mode of torch and passes them on.  Counters, rules, and everything that
// reads them are those of a compiled adapter.
#include "bindings.h"

#include <flopmeter/counting/adapter.h>
#include <flopmeter/counting/op_counter.h>

#include <pybind11/stl.h>

#include <chrono>
#include <deque>
#include <vector>

namespace flopmeter {
namespace {

namespace py = pybind11;

namespace python_adapter {
const FlopmeterHost* host = nullptr;
py::object* mode = nullptr;  // never freed: a counter may outlive the interpreter

/// The extents and lists that the arguments of one call refer to.
struct Scratch {
  std::deque<std::vector<std::int64_t>> values;
  std::deque<std::vector<FlopmeterArg>> items;
};

/// A tensor is a tuple (dtype, is complex, sizes), a list is a list, a number or flag is an int.
FlopmeterArg to_arg(const py::handle& value, Scratch& scratch) {
  FlopmeterArg arg{};
  if (py::isinstance<py::tuple>(value)) {
    const auto fields = py::cast<py::tuple>(value);
    const auto& sizes = scratch.values.emplace_back(fields[2].cast<std::vector<std::int64_t>>());
    arg.kind = FLOPMETER_TENSOR;
    arg.dtype = static_cast<std::uint8_t>(
        parse_dtype(fields[0].cast<std::string>()).value_or(Dtype::other));
    arg.is_complex = fields[1].cast<bool>() ? 1 : 0;
    arg.rank = static_cast<std::int32_t>(sizes.size());
    arg.values = sizes.data();
  } else if (py::isinstance<py::list>(value)) {
    const auto list = py::cast<py::list>(value);
    arg.rank = static_cast<std::int32_t>(list.size());
    if (!list.empty() && py::isinstance<py::tuple>(list[0])) {
      auto& items = scratch.items.emplace_back();
      for (const py::handle each : list) items.push_back(to_arg(each, scratch));
      arg.kind = FLOPMETER_TENSORS;
      arg.items = items.data();
    } else {
      arg.kind = FLOPMETER_LIST;
      arg.values = scratch.values.emplace_back(list.cast<std::vector<std::int64_t>>()).data();
    }
  } else if (py::isinstance<py::int_>(value)) {
    arg.kind = FLOPMETER_INTEGER;
    arg.integer = value.cast<std::int64_t>();
  }
  return arg;
}

std::uint8_t compute_dtype(const FlopmeterOp& op,
                           const std::vector<FlopmeterArg>& args,
                           const std::vector<std::string>& fp32) {
  std::int32_t dtype = op.compute_dtype;
  if (dtype < 0) {
    dtype = FLOPMETER_OTHER_DTYPE;
    const auto at = static_cast<std::size_t>(op.dtype_argument);
    if (at < args.size()) dtype = args[at].dtype;
  }
  return dtype == FLOPMETER_FP32 ? static_cast<std::uint8_t>(dtype_named(fp32[op.precision]))
                                 : static_cast<std::uint8_t>(dtype);
}

/// `pass` is a FlopmeterPass; `fp32` names the dtypes in which fp32 matmuls, convolutions, and
/// recurrent layers run.
void add_call(std::uintptr_t address,
              const py::list& arguments,
              const py::object& output,
              const std::vector<std::string>& fp32,
              std::uint8_t pass,
              bool grad_enabled) {
  const auto* op = reinterpret_cast<const FlopmeterOp*>(address);  // NOLINT: by address
  Scratch scratch;
  std::vector<FlopmeterArg> args;
  for (const py::handle each : arguments) args.push_back(to_arg(each, scratch));
  FlopmeterCall call{};
  call.args = args.data();
  call.arg_count = args.size();
  call.output = to_arg(output, scratch);
  call.dtype = compute_dtype(*op, args, fp32);
  call.pass = pass;
  call.optimizer_work =
      *host->phase == FLOPMETER_PHASE_OPTIMIZER && pass == FLOPMETER_FORWARD && !grad_enabled;
  call.module = FLOPMETER_MODULES_OFF;
  __atomic_load_n(&op->count, __ATOMIC_ACQUIRE)(op, &call);
}

/// The result of a method of the mode, or `failed` if it raises.
template <class Return, class... Args>
Return call_mode(const char* method, Return failed, Args... args) noexcept try {
  const py::gil_scoped_acquire gil;
  return mode->attr(method)(args...).template cast<Return>();
} catch (...) {
  return failed;
}

constexpr FlopmeterAdapter adapter{
    .abi_version = FLOPMETER_ADAPTER_ABI_VERSION,
    .framework_version = "of any version (Python)",
    .install = [] {},
    .intercept = [](const char* name, FlopmeterOp* op) -> int {
      const auto address = reinterpret_cast<std::uintptr_t>(op);  // NOLINT: by address
      return call_mode<int>("intercept", FLOPMETER_NO_SUCH_OP, name, address);
    },
    .list_intercepted = [](void*, void (*)(void*, const char*)) {},
    .find_new_ops = [] {},
    .open_op = [](const char*, const FlopmeterOp*) {},
    .begin_call = [](int) { return 0; },
    .end_call = [] {},
    .inside_call = [] { return 0; },
    .current_module = [] { return FLOPMETER_MODULES_OFF; },
    .count_call = [](const FlopmeterOp*,
                     const FlopmeterArg*,
                     std::size_t,
                     const void* const*,
                     const FlopmeterArg*,
                     std::int32_t,
                     std::uint8_t,
                     std::uint32_t) {},
    .describe_tensor = [](std::uintptr_t, FlopmeterArg*) { return std::int32_t{0}; },
    .add_users = [](std::int32_t counting,
                    std::int32_t) { call_mode<bool>("add_users", false, counting); },
    .run_matmuls = [](std::int64_t rows,
                      std::int64_t inner,
                      std::int64_t columns,
                      std::int32_t calls,
                      int counted) -> double {
      return call_mode<double>("run_matmuls", -1, rows, inner, columns, calls, counted != 0);
    },
    .enter_module = [](std::uint32_t) { return std::uint32_t{0}; },
    .leave_module = [](std::uint32_t) {},
    .begin_profile = [](double, int) { return 0; },
    .end_profile = [](const FlopmeterProfileReceiver*) { return 1; },
    .exclude_from_profile = [] {},
    .make_backward_hook = [](void*, void (*)(void*), void (*)(void*)) -> void* { return nullptr; },
    .free_backward_hook = [](void*) {},
    .hook_tensor = [](void*, std::uintptr_t) { return 0; },  // no backward is reported
    .take_begun = [](void*) { return 0; },
    .find_group = [](const char*) -> void* { return nullptr; },
    .group_rank = [](void*) { return 0; },
    .group_size = [](void*) { return 0; },
    .broadcast = [](void*, void*, std::size_t, std::int64_t, void*, int (*)(void*)) { return 0; },
};

}  // namespace python_adapter
}  // namespace

using namespace python_adapter;  // NOLINT(google-build-using-namespace)

bool counts_in_python() {
  return mode != nullptr;
}

void bind_python_adapter(py::module_& m) {
  m.def(
      "attach_python_adapter",
      [](const py::object& dispatch_mode) {
        mode = new py::object(dispatch_mode);
        check(attach_adapter([](const FlopmeterHost* theirs) {
          host = theirs;
          return &adapter;
        }));
        check(install_op_counter());
      },
      "Counts the calls that a dispatch mode of torch reports.");
  m.def("counts_in_python", &counts_in_python);
  m.def(
      "find_op",
      [](const std::string& name, const std::vector<std::string>& parameters) {
        std::vector<const char*> names;
        for (const std::string& each : parameters) names.push_back(each.c_str());
        FlopmeterOp* op = host->find_op(name.c_str(), names.data(), names.size());
        std::vector<std::int32_t> places(op != nullptr ? names.size() : 0);
        if (op != nullptr) host->find_places(op, names.data(), names.size(), places.data());
        return py::make_tuple(reinterpret_cast<std::uintptr_t>(op), places);  // NOLINT: by address
      },
      "The address of a counted operator, or 0, and the place of each parameter, or -1.");
  m.def("add_call", &add_call);
  m.def("add_unsupported_call", [](std::uintptr_t address) {
    host->add_unsupported(reinterpret_cast<const FlopmeterOp*>(address));  // NOLINT: by address
  });
}

}  // namespace flopmeter
