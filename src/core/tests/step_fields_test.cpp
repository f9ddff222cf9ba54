// SPDX-License-Identifier: Apache-2.0
//
// The field table as a whole.  Sinks are tested against golden files.
#include <flopmeter/core/step_fields.h>

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace flopmeter {
namespace {

TEST(StepFields, every_row_is_described_and_has_its_own_name) {
  std::set<std::string> names;
  std::set<std::string_view> groups;
  std::string_view group;
  for (const Field& field : step_fields()) {
    EXPECT_TRUE(names.insert(full_name(field)).second) << full_name(field);
    EXPECT_FALSE(field.help.empty()) << field.name;
    EXPECT_FALSE(field.help.ends_with('.')) << field.name;
    EXPECT_NE(field.read, nullptr) << field.name;
    EXPECT_EQ(find_step_field(full_name(field)), &field);
    // The rows of a group lie together, because a group is one JSON object.
    if (field.group != group && !field.group.empty()) {
      EXPECT_TRUE(groups.insert(field.group).second) << field.group;
    }
    group = field.group;
  }
  EXPECT_EQ(find_step_field("nothing"), nullptr);
  EXPECT_EQ(find_step_field("phases"), nullptr);
}

TEST(StepFields, prometheus_names_follow_its_conventions) {
  std::set<std::string_view> series;
  std::map<std::string_view, FieldKind> kinds;
  for (const Field& field : step_fields()) {
    if (field.prometheus.empty()) continue;
    EXPECT_NE(field.kind, FieldKind::text) << field.name;
    EXPECT_TRUE(series.insert(field.prometheus).second) << field.prometheus;
    const std::string_view name = field.prometheus.substr(0, field.prometheus.find('{'));
    EXPECT_TRUE(name.starts_with("flopmeter_")) << name;
    const bool sums = field.kind == FieldKind::counter || field.kind == FieldKind::total;
    EXPECT_EQ(name.ends_with("_total"), sums) << name;
    if (field.unit == Unit::ratio) {
      EXPECT_TRUE(name.ends_with("_ratio")) << name;
    }
    if (field.unit == Unit::seconds && !sums) {
      EXPECT_TRUE(name.ends_with("_seconds")) << name;
    }
    if (field.unit == Unit::bytes) {
      EXPECT_TRUE(name.ends_with("_bytes")) << name;
    }
    EXPECT_EQ(kinds.try_emplace(name, field.kind).first->second, field.kind) << name;
  }
}

TEST(StepFields, tensorboard_tags_are_unique) {
  std::set<std::string_view> tags;
  for (const Field& field : step_fields()) {
    if (!field.tensorboard.empty()) {
      EXPECT_TRUE(tags.insert(field.tensorboard).second);
    }
  }
}

TEST(StepFields, an_empty_record_has_no_measured_value) {
  const StepRecord record;
  for (const char* name : {"mfu",
                           "model_flops",
                           "batch",
                           "stage",
                           "time_source",
                           "phases.data",
                           "model_flops_by_dtype.bf16",
                           "goodput",
                           "tokens_per_second",
                           "epoch"}) {
    ASSERT_NE(find_step_field(name), nullptr) << name;
    EXPECT_TRUE(std::holds_alternative<std::monostate>(find_step_field(name)->read(record)))
        << name;
  }
}

TEST(StepFields, a_value_of_another_type_is_refused) {
  StepRecord record;
  EXPECT_FALSE(find_step_field("tokens")->set(record, FieldValue{1.5}));
  EXPECT_FALSE(find_step_field("rank")->set(record, FieldValue{WideInt{1} << 40}));
  EXPECT_FALSE(find_step_field("tag")->set(record, FieldValue{std::string_view{"sleep"}}));
  EXPECT_FALSE(find_step_field("batch")->set(record, FieldValue{std::string_view{"4"}}));
  EXPECT_TRUE(find_step_field("batch")->set(record, FieldValue{std::string_view{"4x8"}}));
  EXPECT_EQ(to_text(record.batch), "4x8");
}

}  // namespace
}  // namespace flopmeter
