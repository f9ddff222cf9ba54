// SPDX-License-Identifier: Apache-2.0
//
// Device tables of users.
#include <flopmeter/catalog/devices.h>

#include <gtest/gtest.h>

namespace flopmeter {
namespace {

std::string refusal(std::string_view text) {
  const auto table = parse_devices(text);
  return table ? "accepted" : table.error().message;
}

TEST(DeviceFile, a_short_table_is_enough) {
  const auto table = parse_devices(
      "\xef\xbb\xbf# mine\r\nname,bf16,source\r\n\r\nFoo X1,123.5,\"our lab, \"\"May\"\"\"\r\n");
  ASSERT_TRUE(table) << table.error().message;
  const auto device = find_device("foo-x1", *table);
  ASSERT_TRUE(device);
  EXPECT_EQ((*device)->source, "our lab, \"May\"");
  EXPECT_EQ((*device)->unit, "device");
  EXPECT_FALSE((*device)->memory);
  EXPECT_DOUBLE_EQ(peaks_of(**device).peak(Dtype::bf16)->value, 123.5e12);
  EXPECT_FALSE(peaks_of(**device).peak(Dtype::fp32));
  EXPECT_FALSE(find_device("H100", *table));
}

TEST(DeviceFile, an_error_names_the_line_and_the_cell) {
  EXPECT_EQ(refusal("name,bf61,source\n"), "device table, line 1: unknown column 'bf61'");
  EXPECT_EQ(refusal("name,sorce\n"),
            "device table, line 1: unknown column 'sorce'; did you mean source?");
  EXPECT_EQ(refusal("name,name,source\n"), "device table, line 1: column 'name' is there twice");
  EXPECT_EQ(refusal("name,bf16\n"), "device table, line 1: column 'source' is missing");
  EXPECT_EQ(refusal("name,bf16,source\nX1,1\n"),
            "device table, line 2: 2 fields where the header has 3");
  EXPECT_EQ(refusal("name,bf16,source\nX1,1,\"a\n"), "device table, line 2: a quote is not closed");
  EXPECT_EQ(refusal("name,bf16,source\nX1,1,\n"),
            "device table, line 2: 'X1' has no source; name where its figures come from");
  EXPECT_EQ(refusal("name,bf16,source\nNVIDIA,1,a\n"),
            "device table, line 2: 'NVIDIA' is not a device name");
  EXPECT_EQ(refusal("name,bf16,sparse,source\nX1,1,fp8,a\n"),
            "device table, line 2: sparse 'fp8' is not a dtype for which this row has a figure");
  EXPECT_EQ(refusal("name,source\nX1,a\n# y\nx-1,b\n"),
            "device table, line 4: 'x-1' is the name of line 2 too");
  EXPECT_EQ(refusal("name,aliases,source\nX1,Y2,a\nY2,,b\n"),
            "device table, line 3: 'Y2' is the name of line 2 too");
  EXPECT_EQ(refusal("# nothing\n"), "device table: no header line (name,bf16,source)");
}

TEST(DeviceFile, a_peak_is_positive_or_missing) {
  for (const std::string cell : {"0", "-1", "nan", "inf", "1e400", "12x", "1e300", " 5"}) {
    EXPECT_EQ(refusal("name,bf16,source\nX1," + cell + ",a\n"),
              "device table, line 2: bf16 '" + cell +
                  "' is not a positive number; leave the cell empty if the value is unknown");
  }
}

}  // namespace
}  // namespace flopmeter
