// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard event files: the few messages that scalars need, written without protobuf, because
// the process may contain another copy of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flopmeter {

/// Builds one message in the wire format of protobuf.
class ProtoMessage {
 public:
  ProtoMessage& number(int field, std::uint64_t value);
  ProtoMessage& real64(int field, double value);
  ProtoMessage& real32(int field, float value);
  ProtoMessage& text(int field, std::string_view value);
  ProtoMessage& message(int field, const ProtoMessage& value) { return text(field, value.bytes_); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  void key(int field, unsigned wire_type);
  std::string bytes_;
};

/// A message framed with length and checksums.
std::string tfevents_frame(std::string_view data);

/// The first event of a file.
std::string tfevents_header(double wall_time);

/// One event with the values of `summary` (a Summary message).
std::string tfevents_event(double wall_time, std::int64_t step, const ProtoMessage& summary);

}  // namespace flopmeter
