// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/json_writer.h>
#include <flopmeter/core/text.h>

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace flopmeter {
namespace {

TEST(WideInt, round_trips_beyond_64_bits) {
  for (const std::string_view text : {"0",
                                      "-1",
                                      "18446744073709551616",
                                      "170141183460469231731687303715884105727",
                                      "-170141183460469231731687303715884105728"}) {
    EXPECT_EQ(to_string(*parse_wide_int(text)), text);
  }
}

TEST(WideInt, text_that_is_not_an_integer_or_too_large_is_refused) {
  for (const std::string_view text :
       {"", "-", "1.0", "1e3", " 1", "+1", "170141183460469231731687303715884105728"}) {
    EXPECT_FALSE(parse_wide_int(text)) << text;
  }
}

TEST(Text, si_keeps_three_digits) {
  EXPECT_EQ(si(51.47e12), "51.5 T");
  EXPECT_EQ(si(8.03e9), "8.03 G");
  EXPECT_EQ(si(999.6), "1.00 k");
  EXPECT_EQ(si(912), "912");
}

TEST(Text, grouped_sets_a_comma_every_three_digits) {
  EXPECT_EQ(grouped(1048576), "1,048,576");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(-1000), "-1,000");
}

TEST(Text, percent_of_a_small_part_keeps_two_digits) {
  EXPECT_EQ(percent(0.413), "41.3 %");
  EXPECT_EQ(percent(0.0012), "0.1 %");
  EXPECT_EQ(percent(0.000228), "0.023 %");
  EXPECT_EQ(percent(-1e-5), "-0.0010 %");
  EXPECT_EQ(percent(1e-20), "0.00000000 %");
  EXPECT_EQ(percent(0), "0.0 %");
}

TEST(Text, durations_of_any_size_are_shown) {
  EXPECT_EQ(duration({-1}), "-1.00 s");
  EXPECT_EQ(duration({1e12}), "11574074.1 days");
  EXPECT_EQ(duration({1e300}), "more than a million years");
}

TEST(Text, json_escapes_control_characters) {
  std::string out;
  append_json_string(out, "a\u009b\u202e\x1b<\"\n");
  EXPECT_EQ(out, R"("a\u009b\u202e\u001b\u003c\"\n")");
}

TEST(Text, printable_lets_no_control_byte_through) {
  EXPECT_EQ(printable("a\x1b[2Jb\nc\x7f\xc2\x9b"), "a [2Jb c  ");
  EXPECT_EQ(printable("\xff\xc3\xa9"), "\xef\xbf\xbd\xc3\xa9");
  EXPECT_EQ(printable("a\u202eb\u2066c\u200fd"), "a b c d") << "the direction of text";
}

TEST(Text, nearest_suggests_small_slips_only) {
  constexpr std::array<std::string_view, 3> known = {"llama-3-8b", "llama-2-7b", "mixtral-8x7b"};
  EXPECT_EQ(nearest("llama3-8b", known).front(), "llama-3-8b");
  EXPECT_TRUE(nearest("zzzzzz", known).empty());
  const std::vector<std::string_view> scoped = {"aten::bmm", "aten::mm"};
  EXPECT_EQ(nearest("mm", scoped).front(), "aten::mm");
  EXPECT_EQ(did_you_mean("llama-3-8", known).substr(0, 25), "; did you mean llama-3-8b");
}

TEST(Text, has_word_matches_whole_words_only) {
  EXPECT_TRUE(has_word("gpt2 GPT2LMHeadModel", "gpt2"));
  EXPECT_TRUE(has_word("gpt2 GPT2LMHeadModel", "GPT2LMHeadModel"));
  EXPECT_FALSE(has_word("gpt2 GPT2LMHeadModel", "GPT2"));
  EXPECT_FALSE(has_word("gpt2 GPT2LMHeadModel", "gpt2 GPT2LMHeadModel"));
  EXPECT_FALSE(has_word("gpt2 GPT2LMHeadModel", ""));
}

TEST(Text, glob_match_knows_star_question_and_ranges) {
  EXPECT_TRUE(glob_match("visual.*", "visual.blocks.0.attn.qkv"));
  EXPECT_TRUE(glob_match("*.layers.[0-3].*", "model.layers.2.mlp"));
  EXPECT_FALSE(glob_match("*.layers.[0-3].*", "model.layers.12.mlp"));
  EXPECT_TRUE(glob_match("*q_proj", "a.q_proj"));
  EXPECT_FALSE(glob_match("q_proj", "a.q_proj"));
  EXPECT_TRUE(glob_match("", ""));
}

TEST(JsonWriter, values_without_a_json_number_are_null) {
  std::string out;
  JsonWriter{out}
      .begin_array()
      .value(std::nan(""))
      .value(INFINITY)
      .value(std::optional<double>{})
      .value(0.5)
      .end_array();
  EXPECT_EQ(out, "[null,null,null,0.5]");
}

TEST(JsonWriter, integers_beyond_64_bits_stay_exact) {
  std::string out;
  JsonWriter{out}.begin_object().field("flops", Flops{WideInt{1} << 70}).end_object();
  EXPECT_EQ(out, R"({"flops":1180591620717411303424})");
}

TEST(JsonWriter, text_is_escaped_and_valid_utf8) {
  std::string out;
  JsonWriter{out}.value("a\"b\\\n\x1b</script>\xff");
  EXPECT_EQ(out, "\"a\\\"b\\\\\\n\\u001b\\u003c/script>\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace flopmeter
