// SPDX-License-Identifier: Apache-2.0
//
// The calls of a compiled graph, which are counted each time the graph runs: its kernels may not
// pass the dispatcher.
#include "bindings.h"

#include <flopmeter/catalog/op_rule.h>
#include <flopmeter/core/compilations.h>
#include <flopmeter/counting/adapter.h>
#include <flopmeter/counting/module_scope.h>

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

namespace flopmeter {
namespace {

namespace py = pybind11;

/// Calls with their arguments.  A tensor is (dtype, is complex, extents), a list of integers or
/// tensors a list, an integer or flag an int, and what no rule reads None.  Modules are relative to
/// the module that was compiled, which is open when the graph runs.
class GraphCalls {
 public:
  explicit GraphCalls(const py::iterable& rows) {
    for (const py::handle& row : rows) add_row(py::cast<py::tuple>(row));
  }

  void count() {
    const FlopmeterAdapter* adapter = attached_adapter();
    const std::uint32_t root = adapter->current_module();
    const std::vector<std::uint32_t>* modules =
        root == FLOPMETER_MODULES_OFF ? nullptr : &modules_in(root);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      adapter->count_call(call.op,
                          call.args.data(),
                          call.args.size(),
                          nullptr,
                          &call.output,
                          call.device,
                          call.pass,
                          modules == nullptr ? FLOPMETER_MODULES_OFF : (*modules)[i]);
    }
  }

 private:
  struct Call {
    const FlopmeterOp* op = nullptr;
    std::vector<FlopmeterArg> args;
    FlopmeterArg output{};
    std::int32_t device = 0;
    std::uint8_t pass = FLOPMETER_CURRENT_PASS;
    std::string module;
  };

  const std::vector<std::uint32_t>& modules_in(std::uint32_t root) {
    auto& ids = modules_[root];
    if (ids.empty()) {
      const std::string name = module_name(root);
      const std::string prefix = name.empty() || name == "." ? "" : name + ".";
      for (const Call& call : calls_)
        ids.push_back(call.module.empty() ? root : module_id(prefix + call.module));
    }
    return ids;
  }

  /// Name, arguments, result, device type, pass (None: the current one), module path, and the names
  /// of the parameters.
  void add_row(const py::tuple& row) {
    Call call;
    call.op = counted_op(row[0].cast<std::string>());
    if (call.op == nullptr) return;
    const OpRule* rule = catalog_rule(*call.op);
    const auto parameters = row[6].cast<std::vector<std::string>>();
    std::size_t position = 0;
    for (const py::handle& each : py::cast<py::sequence>(row[1])) {
      int place = static_cast<int>(position);
      if (rule != nullptr && rule->place_of != nullptr && position < parameters.size())
        place = rule->place_of(parameters[position]);
      ++position;
      if (place < 0 || each.is_none()) continue;
      const auto at = static_cast<std::size_t>(place);
      if (call.args.size() <= at) call.args.resize(at + 1);
      call.args[at] = read(each);
    }
    call.output = read(row[2]);
    call.device = row[3].cast<std::int32_t>();
    if (!row[4].is_none()) call.pass = row[4].cast<std::uint8_t>();
    call.module = row[5].cast<std::string>();
    calls_.push_back(std::move(call));
  }

  FlopmeterArg read(const py::handle& value) {
    FlopmeterArg arg{};
    if (py::isinstance<py::int_>(value)) {
      arg.kind = FLOPMETER_INTEGER;
      arg.integer = value.cast<std::int64_t>();
    } else if (py::isinstance<py::tuple>(value)) {
      const auto tensor = py::cast<py::tuple>(value);
      arg = read_integers(py::cast<py::sequence>(tensor[2]));
      arg.kind = FLOPMETER_TENSOR;
      const auto dtype = parse_dtype(tensor[0].cast<std::string>());
      arg.dtype = static_cast<std::uint8_t>(dtype.value_or(Dtype::other));
      arg.is_complex = tensor[1].cast<bool>() ? 1 : 0;
    } else if (py::isinstance<py::list>(value)) {
      const auto list = py::cast<py::sequence>(value);
      if (list.size() != 0 && !py::isinstance<py::int_>(list[0])) {
        auto& items = items_.emplace_back();
        for (const py::handle& each : list) items.push_back(read(each));
        arg.kind = FLOPMETER_TENSORS;
        arg.rank = static_cast<std::int32_t>(items.size());
        arg.items = items.data();
      } else {
        arg = read_integers(list);
        arg.kind = FLOPMETER_LIST;
      }
    }
    return arg;
  }

  FlopmeterArg read_integers(const py::sequence& list) {
    auto& values = values_.emplace_back();
    for (const py::handle& each : list) values.push_back(each.cast<std::int64_t>());
    FlopmeterArg arg{};
    arg.rank = static_cast<std::int32_t>(values.size());
    arg.values = values.data();
    return arg;
  }

  std::vector<Call> calls_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> modules_;  ///< of the calls, by root
  std::deque<std::vector<std::int64_t>> values_;  // deques keep pointers valid when they grow
  std::deque<std::vector<FlopmeterArg>> items_;
};

}  // namespace

void bind_compiled_graphs(py::module_& m) {
  py::class_<GraphCalls>(m, "GraphCalls", "The calls of a compiled graph.")
      .def(py::init<py::iterable>(), py::arg("rows"))
      .def("count", &GraphCalls::count, "Counts each call once.");
  m.def("compilation_began", [] { compilations().fetch_add(1, std::memory_order_relaxed); });
  m.def("begin_call", [](bool is_graph) {
    const FlopmeterAdapter* adapter = attached_adapter();
    return adapter != nullptr && adapter->begin_call(is_graph ? 1 : 0) != 0;
  });
  m.def("end_call", [] { attached_adapter()->end_call(); });
  m.def("inside_call", [] { return attached_adapter()->inside_call() != 0; });
  m.def("open_op", [](const std::string& name) {
    if (const FlopmeterOp* op = counted_op(name)) attached_adapter()->open_op(name.c_str(), op);
  });
  m.def(
      "has_rule",
      [](const std::string& name) {
        const FlopmeterOp* op = counted_op(name);
        return op != nullptr && has_rule(*op);
      },
      "Whether the operator has a FLOP cost.");
  m.def("add_unsupported", [](const std::string& name) {
    const FlopmeterOp* op = counted_op(name);
    const FlopmeterArg none{};
    if (op != nullptr)
      attached_adapter()->count_call(
          op, nullptr, 0, nullptr, &none, 0, FLOPMETER_CURRENT_PASS, FLOPMETER_CURRENT_MODULE);
  });
}

}  // namespace flopmeter
