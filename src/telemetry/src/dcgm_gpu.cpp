// SPDX-License-Identifier: Apache-2.0
#include "dcgm_gpu.h"

#include <algorithm>
#include <cstring>

namespace flopmeter {
namespace {

struct ActivityField {
  dcgm::Field id;
  std::optional<double> GpuReading::*field;
};

constexpr std::array<ActivityField, 6> activity_fields = {{
    {dcgm::prof_sm_active, &GpuReading::sm_active},
    {dcgm::prof_pipe_tensor_active, &GpuReading::tensor_active},
    {dcgm::prof_dram_active, &GpuReading::dram_active},
    {dcgm::prof_pipe_fp64_active, &GpuReading::fp64_active},
    {dcgm::prof_pipe_fp32_active, &GpuReading::fp32_active},
    {dcgm::prof_pipe_fp16_active, &GpuReading::fp16_active},
}};

Error failed(const std::string& what, dcgm::Return code) {
  return {ErrorCode::unsupported, "DCGM: " + what + ": error " + std::to_string(code)};
}

}  // namespace

Result<void> DcgmGpu::find_gpu(const std::string& uuid,
                               dcgm::Return (*devices)(dcgm::Handle, unsigned*, int*)) {
  std::array<unsigned, dcgm::most_devices> ids{};
  int count = 0;
  if (const auto code = devices(handle_, ids.data(), &count); code != dcgm::ok)
    return failed("cannot list GPUs", code);
  unsigned short field = dcgm::dev_uuid;
  for (int i = 0; i < std::min(count, static_cast<int>(ids.size())); ++i) {
    gpu_ = static_cast<int>(ids.at(static_cast<std::size_t>(i)));
    if (uuid.empty()) return {};
    dcgm::FieldValue& value = values_.front();
    if (latest_values_(handle_, dcgm::entity_gpu, gpu_, &field, 1, &value) != dcgm::ok) continue;
    const std::string_view text{value.value.text.data(),
                                strnlen(value.value.text.data(), value.value.text.size())};
    if (value.type == dcgm::type_string && text == uuid) return {};
  }
  return Error{ErrorCode::not_found, "DCGM: unknown GPU " + uuid};
}

Result<DcgmGpu> DcgmGpu::open(const GpuRequest& request) {
  const auto library = Library::open(request.dcgm);
  if (!library) return library.error();
  DcgmGpu gpu;
  dcgm::Return (*init)() = nullptr;
  dcgm::Return (*embed)(int, dcgm::Handle*) = nullptr;
  dcgm::Return (*devices)(dcgm::Handle, unsigned*, int*) = nullptr;
  dcgm::Return (*group)(dcgm::Handle, int, unsigned short*, const char*, dcgm::FieldGroup*) =
      nullptr;
  dcgm::Return (*watch)(dcgm::Handle, dcgm::Group, dcgm::FieldGroup, long long, double, int) =
      nullptr;
  if (!(*library).find("dcgmInit", init) || !(*library).find("dcgmStartEmbedded", embed) ||
      !(*library).find("dcgmGetAllDevices", devices) ||
      !(*library).find("dcgmFieldGroupCreate", group) ||
      !(*library).find("dcgmWatchFields", watch) ||
      !(*library).find("dcgmUpdateAllFields", gpu.update_) ||
      !(*library).find("dcgmEntityGetLatestValues", gpu.latest_values_)) {
    return Error{ErrorCode::unsupported, request.dcgm + " lacks DCGM functions"};
  }
  static_cast<void>((*library).find("dcgmStopEmbedded", gpu.stop_));
  gpu.values_.resize(activity_fields.size());
  if (const auto code = init(); code != dcgm::ok) return failed("cannot initialize", code);
  if (const auto code = embed(dcgm::operation_mode_automatic, &gpu.handle_); code != dcgm::ok)
    return failed("cannot start the embedded engine", code);
  std::vector<unsigned short> ids = {dcgm::dev_uuid};
  for (const ActivityField& field : activity_fields) ids.push_back(field.id);
  dcgm::FieldGroup fields = 0;
  if (const auto code =
          group(gpu.handle_, static_cast<int>(ids.size()), ids.data(), "flopmeter", &fields);
      code != dcgm::ok)
    return failed("cannot create a field group", code);
  const long long microseconds = std::chrono::microseconds{request.interval}.count();
  constexpr double keep_seconds = 10;
  if (const auto code = watch(gpu.handle_, dcgm::all_gpus, fields, microseconds, keep_seconds, 2);
      code != dcgm::ok)
    return failed("cannot watch the profiling fields", code);
  if (const auto code = gpu.update_(gpu.handle_, 1); code != dcgm::ok)
    return failed("cannot read the first values", code);
  if (const auto found = gpu.find_gpu(request.uuid, devices); !found) return found.error();
  return gpu;
}

void DcgmGpu::close() {
  if (stop_ != nullptr) stop_(handle_);
}

void DcgmGpu::read(GpuReading& reading) {
  std::array<unsigned short, activity_fields.size()> ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) ids.at(i) = activity_fields.at(i).id;
  if (latest_values_(handle_,
                     dcgm::entity_gpu,
                     gpu_,
                     ids.data(),
                     static_cast<unsigned>(ids.size()),
                     values_.data()) != dcgm::ok)
    return;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const dcgm::FieldValue& value = values_[i];
    const double number = value.value.dbl;
    // A blank value is far above 1, and NaN fails both comparisons.
    if (value.status == dcgm::ok && value.type == dcgm::type_double && number >= 0 && number <= 1)
      reading.*activity_fields.at(i).field = number;
  }
}

}  // namespace flopmeter
