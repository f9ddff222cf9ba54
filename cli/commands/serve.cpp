// SPDX-License-Identifier: Apache-2.0
//
// flopmeter serve: a dashboard of all runs below some directories, until Ctrl-C.
#include "../command.h"

#include <flopmeter/core/text.h>
#include <flopmeter/report/dashboard.h>

#include <algorithm>
#include <csignal>
#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::vector<std::string> directories;
  std::string host = "127.0.0.1";
  int port = 7007;
  std::string token;
};

/// Letters that a URL and a cookie may contain.
std::string check_token(const std::string& text) {
  constexpr std::string_view marks = "-._~";
  const bool plain = std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           marks.find(c) != std::string_view::npos;
  });
  constexpr std::size_t shortest_token = 8;
  if (plain && text.size() >= shortest_token) return {};
  return "must have at least 8 characters, only letters, digits, and -._~";
}

std::string check_port(const std::string& text) {
  const auto port = parse_int(text);
  return port && *port >= 0 && *port <= 65535 ? "" : "must be a port, 0 to 65535";
}

Exit run(const Options& options) {
  // Blocked before any thread starts, so that only sigwait() receives them.
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ends, signal);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  DashboardOptions dashboard{.directories = options.directories,
                             .host = options.host,
                             .port = static_cast<std::uint16_t>(options.port),
                             .token = options.token,
                             .version = FLOPMETER_VERSION};
  if (dashboard.directories.empty()) dashboard.directories.emplace_back(".");
  const auto running = Dashboard::start(dashboard);
  if (!running) return refuse(running.error());
  if (const Exit printed = print("Dashboard: " + (*running)->address() + "  (Ctrl-C ends it)\n");
      printed != 0)
    return printed;
  int received = 0;
  sigwait(&ends, &received);
  return 0;
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option(
      "dirs", o.directories, "directories to search for runs (default: the current one)");
  app.add_option("--host", o.host, "address to listen on; a non-loopback address requires --token")
      ->check(check_not_empty)
      ->capture_default_str();
  app.add_option("--port", o.port, "port; 0 selects a free one")
      ->check(check_port)
      ->capture_default_str();
  app.add_option("--token", o.token, "secret that a browser must present")->check(check_token);
  app.footer(
      "The server only reads runs. From another machine: ssh -L 7007:localhost:7007 HOST, then "
      "open the printed address.");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_serve{
    .name = "serve",
    .help = "Serve a live dashboard of all runs below a directory",
    .order = 13,
    .set_up = set_up};

}  // namespace flopmeter
