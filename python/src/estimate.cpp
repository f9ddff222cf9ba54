// SPDX-License-Identifier: Apache-2.0
//
// The catalog's models and estimate() for Python.  Results are JSON text, in which integers are
// exact.
#include "training_argument.h"

#include <flopmeter/catalog/estimate.h>
#include <flopmeter/catalog/model_family.h>

#include <pybind11/stl.h>

#include <tuple>
#include <vector>

namespace py = pybind11;

namespace flopmeter {
namespace {

using Sequences = std::vector<std::pair<std::int64_t, std::int64_t>>;
using Images = std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;

py::int_ exact(WideInt value) {
  const std::string digits = to_string(value);
  return py::reinterpret_steal<py::int_>(PyLong_FromString(digits.c_str(), nullptr, 10));
}

Model from_config(const std::string& json, const std::string& origin) {
  return take(build_model(take(Config::parse(json, origin))));
}

std::string estimate_json(const Model& model,
                          const Sequences& sequences,
                          const Images& images,
                          const Training& training,
                          const std::string& convention,
                          const std::string& dtype,
                          const std::optional<PeakTable>& peaks,
                          std::int64_t devices,
                          std::optional<double> step_seconds,
                          std::optional<double> tokens_per_second) {
  EstimateRequest request;
  for (const auto& [length, count] : sequences)
    request.batch.sequences.push_back({.length = length, .count = count});
  for (const auto& [t, h, w] : images) request.batch.images.push_back({.t = t, .h = h, .w = w});
  request.training = training;
  request.convention = convention;
  request.dtype = dtype_named(dtype);
  request.peaks = peaks;
  request.devices = devices;
  if (step_seconds) request.step_seconds = Seconds{*step_seconds};
  request.tokens_per_second = tokens_per_second;
  std::string text;
  JsonWriter json(text);
  Estimate result = take(estimate(model, request));
  add_published(result, model, request);
  write_json(json, result);
  return text;
}

}  // namespace

Training training_of(const std::string& trainable,
                     const std::string& recompute,
                     const std::string& attention,
                     bool forward_only,
                     std::optional<bool> mtp) {
  const auto one_of =
      [](const char* what, const std::string& word, std::initializer_list<const char*> words) {
        std::string known;
        int at = 0;
        for (const char* each : words) {
          if (word == each) return at;
          known.append(known.empty() ? "" : ", ").append(each);
          ++at;
        }
        throw py::value_error(std::string{what} + " '" + word + "': expected " + known);
      };
  using Mtp = Training::Mtp;
  return {
      .trainable = take(Trainable::parse(trainable)),
      .recompute =
          static_cast<Recompute>(one_of("recompute", recompute, {"none", "selective", "full"})),
      .attention = static_cast<AttentionKernel>(one_of("attention", attention, {"fused", "eager"})),
      .forward_only = forward_only,
      .mtp = !mtp   ? Mtp::by_convention
             : *mtp ? Mtp::on
                    : Mtp::off};
}

void bind_estimate(py::module_& m) {
  py::class_<Model>(m, "Model", "A model of the catalog.")
      .def_static(
          "named", [](const std::string& name) { return take(find_model(name)); }, py::arg("name"))
      .def_static("from_config", &from_config, py::arg("json"), py::arg("origin"))
      .def_readonly("name", &Model::name)
      .def_readonly("family", &Model::family)
      .def_readonly("notes", &Model::notes)
      .def_property_readonly("known",
                             [](const Model& model) { return !model.bare_parameters.has_value(); })
      .def_property_readonly(
          "parameters", [](const Model& model) { return exact(count_parameters(model).total); });
  py::class_<Training>(
      m, "Training", "Properties of a training step that are not part of the model.")
      .def(py::init(&training_of),
           py::arg("trainable") = "all",
           py::arg("recompute") = "none",
           py::arg("attention") = "fused",
           py::arg("forward_only") = false,
           py::arg("mtp") = py::none());
  m.def("estimate_json",
        &estimate_json,
        py::arg("model"),
        py::arg("sequences"),
        py::arg("images"),
        py::arg("training"),
        py::arg("convention"),
        py::arg("dtype"),
        py::arg("peaks"),
        py::arg("devices"),
        py::arg("step_seconds"),
        py::arg("tokens_per_second"));
}

}  // namespace flopmeter
