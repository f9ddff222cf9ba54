// SPDX-License-Identifier: Apache-2.0
//
// A fake libdcgm.so.4 for tests. FAKE_… macros select a failure.
#include "../../src/dcgm.h"

#include <cstring>

using namespace flopmeter::dcgm;

extern "C" {

Return dcgmInit() {
  return ok;
}
Return dcgmStartEmbedded(int mode, Handle* handle) {
  *handle = 7;
#if defined(FAKE_FAILS)
  mode = -1;
#endif
  return mode == operation_mode_automatic ? ok : -1;
}
Return dcgmGetAllDevices(Handle handle, unsigned* ids, int* count) {
  ids[0] = 3;
  ids[1] = 4;
  *count = 2;
  return handle == 7 ? ok : -1;
}
Return dcgmFieldGroupCreate(
    Handle handle, int count, unsigned short* ids, const char* /*name*/, FieldGroup* group) {
  *group = 9;
  return handle == 7 && count == 7 && ids[0] == dev_uuid ? ok : -1;
}
Return dcgmWatchFields(
    Handle handle, Group group, FieldGroup fields, long long every, double age, int /*most*/) {
  return handle == 7 && group == all_gpus && fields == 9 && every > 0 && age > 0 ? ok : -1;
}
Return dcgmUpdateAllFields(Handle /*handle*/, int wait) {
  return wait == 1 ? ok : -1;
}
#if !defined(FAKE_LACKS)
Return dcgmEntityGetLatestValues(
    Handle handle, int entity, int id, unsigned short* fields, unsigned count, FieldValue* values) {
  if (handle != 7 || entity != entity_gpu) return -1;
  for (unsigned i = 0; i < count; ++i) {
    values[i].field = fields[i];
    values[i].status = ok;
    if (fields[i] == dev_uuid) {
      values[i].type = type_string;
      std::strcpy(values[i].value.text.data(), id == 4 ? "GPU-fake" : "GPU-other");
      continue;
    }
    values[i].type = type_double;
    values[i].value.dbl = fields[i] == prof_pipe_tensor_active ? 0.25 : fp64_blank + 2;
#if defined(FAKE_SENTINELS)
    values[i].value.dbl = fp64_blank + (fields[i] % 4);
#endif
  }
  return ok;
}
#endif
}
