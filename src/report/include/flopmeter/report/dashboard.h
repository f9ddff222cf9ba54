// SPDX-License-Identifier: Apache-2.0
//
// The live dashboard: the page of a report for every run below some directories, over HTTP.  It
// reads runs only and keeps its index in memory.
#pragma once

#include <flopmeter/core/result.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace flopmeter {

struct DashboardOptions {
  std::vector<std::string> directories;  ///< looked through for runs
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: a free port
  std::string token{};     ///< needed beyond the loopback
  std::string version{};   ///< of the program
};

/// Serves until destruction.
class Dashboard {
 public:
  /// An error if a directory does not exist or the port is taken.
  static Result<std::unique_ptr<Dashboard>> start(const DashboardOptions& options);

  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;
  Dashboard(Dashboard&&) = delete;
  Dashboard& operator=(Dashboard&&) = delete;
  ~Dashboard();

  /// The address to open in a browser.
  [[nodiscard]] std::string address() const;

 private:
  struct State;
  explicit Dashboard(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flopmeter
