// SPDX-License-Identifier: Apache-2.0
#include "tfevents.h"

#include "crc32c.h"

#include <bit>

namespace flopmeter {
namespace {

template <class T>
void append_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
}

/// The mask of the TensorFlow record format.
std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

}  // namespace

void ProtoMessage::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) bytes_.push_back(static_cast<char>(value | 0x80U));
  bytes_.push_back(static_cast<char>(value));
}

void ProtoMessage::key(int field, unsigned wire_type) {
  varint((static_cast<std::uint64_t>(field) << 3U) | wire_type);
}

ProtoMessage& ProtoMessage::number(int field, std::uint64_t value) {
  key(field, 0);
  varint(value);
  return *this;
}

ProtoMessage& ProtoMessage::real64(int field, double value) {
  key(field, 1);
  append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::real32(int field, float value) {
  key(field, 5);
  append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::text(int field, std::string_view value) {
  key(field, 2);
  varint(value.size());
  bytes_.append(value);
  return *this;
}

std::string tfevents_frame(std::string_view data) {
  std::string length;
  append_little_endian(length, static_cast<std::uint64_t>(data.size()));
  std::string frame = length;
  append_little_endian(frame, masked(crc32c(length)));
  frame.append(data);
  append_little_endian(frame, masked(crc32c(data)));
  return frame;
}

std::string tfevents_header(double wall_time) {
  ProtoMessage event;
  event.real64(1, wall_time)
      .text(3, "brain.Event:2")
      .message(10, ProtoMessage{}.text(1, "flopmeter"));
  return tfevents_frame(event.bytes());
}

std::string tfevents_event(double wall_time, std::int64_t step, const ProtoMessage& summary) {
  ProtoMessage event;
  event.real64(1, wall_time).number(2, static_cast<std::uint64_t>(step)).message(5, summary);
  return tfevents_frame(event.bytes());
}

}  // namespace flopmeter
