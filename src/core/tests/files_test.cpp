// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/files.h>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace flopmeter {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Files : public testing::Test {
 protected:
  Files() : folder_(testing::TempDir() + "filesXXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~Files() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder_ + "/" + name; }
  static std::string content(const std::string& file) { return *read_file(file, 1000); }

  std::string folder_;
};

TEST_F(Files, a_replaced_file_keeps_its_mode) {
  std::ofstream{path("page")} << "old";
  fs::permissions(path("page"), fs::perms{0600});
  ASSERT_TRUE(replace_file(path("page"), "new"));
  EXPECT_EQ(content(path("page")), "new");
  EXPECT_EQ(fs::status(path("page")).permissions(), fs::perms{0600});
  EXPECT_EQ(std::distance(fs::directory_iterator{folder_}, {}), 1);
}

TEST_F(Files, a_file_of_the_program_is_not_a_standard_stream) {
  const int inherited = open(path("log").c_str(), O_WRONLY | O_CREAT, 0600);
  EXPECT_TRUE(is_standard_stream(inherited));
  EXPECT_EQ(fcntl(inherited, F_SETFD, FD_CLOEXEC), 0);
  EXPECT_FALSE(is_standard_stream(inherited));
  close(inherited);
  EXPECT_FALSE(is_standard_stream(inherited)) << "closed";
}

TEST_F(Files, a_link_is_followed) {
  std::ofstream{path("page")} << "old";
  fs::create_symlink("page", path("link"));
  ASSERT_TRUE(replace_file(path("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("page")), "new");
}

TEST_F(Files, a_link_that_leads_nowhere_is_refused) {
  fs::create_symlink("page", path("link"));
  EXPECT_FALSE(replace_file(path("link"), "new"));
  EXPECT_TRUE(fs::is_symlink(path("link")));
}

TEST_F(Files, devices_pipes_and_folders_are_refused) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  for (const std::string& target : {path("pipe"), folder_, std::string{"/dev/null"}}) {
    const auto before = fs::status(target).type();
    const auto written = replace_file(target, "text");
    ASSERT_FALSE(written) << target;
    EXPECT_THAT(written.error().message, HasSubstr("not a regular file"));
    EXPECT_EQ(fs::status(target).type(), before);
    const auto text = read_file(target, 1000);
    ASSERT_FALSE(text) << target;
    EXPECT_THAT(text.error().message, HasSubstr("not a regular file"));
  }
}

TEST_F(Files, a_file_above_the_limit_is_refused) {
  std::ofstream{path("big")} << std::string(3U << 20U, 'x');
  EXPECT_TRUE(read_file(path("big"), 3U << 20U));
  const auto text = read_file(path("big"), 2U << 20U);
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().message, HasSubstr("larger than 2 MiB"));
  EXPECT_EQ(read_tail(path("big"), 5), "xxxxx");
}

}  // namespace
}  // namespace flopmeter
