// SPDX-License-Identifier: Apache-2.0
//
// The paths of the dashboard.  None of them is a path of the file system: a run is named by its id,
// an asset by its name in the program.
#include "../src/page_assets.h"
#include "../src/report_data.h"
#include "run_list.h"

#include <flopmeter/core/text.h>
#include <flopmeter/http/server.h>
#include <flopmeter/report/dashboard.h>
#include <flopmeter/runstore/run_layout.h>
#include <flopmeter/trace/run_trace.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace flopmeter {
namespace {

constexpr std::string_view json_type = "application/json; charset=utf-8";

HttpResponse json_response(std::string text) {
  return {.content_type = std::string{json_type}, .body = std::move(text)};
}

HttpResponse not_found() {
  return {.status = 404, .body = "not found\n"};
}

double now_unix() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The integer that a query gives `name`.
std::optional<long long> integer(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('='))
      return parse_int(pair.substr(name.size() + 1));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return std::nullopt;
}

/// Names that clients may use for this machine.
std::vector<std::string> own_names(const std::string& host) {
  std::vector<std::string> names{host, "[" + host + "]"};
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) names.emplace_back(name.data());
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return names;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (each->ifa_addr->sa_family == AF_INET) {
      const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      if (inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) != nullptr)
        names.emplace_back(text.data());
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      const auto* address = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
      if (inet_ntop(AF_INET6, &address->sin6_addr, text.data(), text.size()) != nullptr)
        names.push_back("[" + std::string{text.data()} + "]");
    }
  }
  freeifaddrs(all);
  return names;
}

}  // namespace

struct Dashboard::State {
  State(const DashboardOptions& given, std::vector<std::string> roots)
      : options(given), runs(std::move(roots)) {}

  HttpResponse respond(const HttpRequest& request) {
    if (request.path == "/")
      return {.content_type = "text/html; charset=utf-8", .body = live_page()};
    if (request.path.starts_with("/assets/")) return asset(request.path.substr(8));
    if (request.path == "/api/runs") return json_response(runs.json());
    if (request.path == "/api/events") return events();
    if (request.path.starts_with("/api/run/")) return run(request);
    return not_found();
  }

  static HttpResponse asset(std::string_view name) {
    const auto found = page_asset(name);
    if (!found) return not_found();
    return {.content_type = name.ends_with(".css") ? "text/css; charset=utf-8"
                                                   : "text/javascript; charset=utf-8",
            .body = std::string{*found}};
  }

  /// Ids of the runs that changed; all at first, so that a page that comes back misses nothing.
  HttpResponse events() {
    HttpResponse response{.content_type = "text/event-stream"};
    response.events = [this, seen = std::int64_t{-1}]() mutable -> std::string {
      const std::int64_t before = seen;
      const std::vector<std::string> ids = runs.changed(seen);
      if (seen == before) return {};
      std::string text = before < 0 ? "retry: 1000\ndata: " : "data: ";
      JsonWriter json{text};
      json.begin_array();
      for (const std::string& id : ids) json.value(id);
      json.end_array();
      return text + "\n\n";
    };
    return response;
  }

  [[nodiscard]] ReportOptions report_options() const { return {options.version, now_unix()}; }

  /// The step that the run recorded with Kineto.  Kept for the latest run that was shown: a trace
  /// is large, and a page asks again whenever the run grows.  Call while the run does not change.
  const std::optional<DeviceReport>& recorded_step(const RunDirectory& run) {
    const std::vector<int> ranks = run.ranks();
    if (ranks.empty()) {
      recorded_key.clear();
      recorded.reset();
      return recorded;
    }
    std::string key = run.path;
    for (const RankFile& file : run.files_of(ranks.front())) {
      std::error_code code;
      const RunLayout layout{run.path, file.stamp, file.rank};
      const auto time = std::filesystem::last_write_time(layout.trace(), code);
      // libc++ counts in 128 bits.
      const auto count = static_cast<std::int64_t>(time.time_since_epoch().count());
      if (!code) key += " " + std::to_string(count);
    }
    if (key != std::exchange(recorded_key, key)) recorded = read_run_trace(run, ranks.front());
    return recorded;
  }

  /// /api/run/<id>, and the views of it.
  HttpResponse run(const HttpRequest& request) {
    const std::string_view rest = std::string_view{request.path}.substr(9);
    const std::size_t slash = rest.find('/');
    const std::string_view view =
        slash == std::string_view::npos ? std::string_view{} : rest.substr(slash + 1);
    HttpResponse response = not_found();
    runs.with(rest.substr(0, slash), [&](const ListedRun& listed) {
      const RunIndex& index = listed.index;
      if (!listed.problem.empty()) {
        response = {.status = 404, .body = listed.problem + "\n"};
      } else if (view.empty()) {
        response = json_response(report_json(index, report_options(), recorded_step(index.run())));
      } else if (view == "ranks") {
        response = json_response(
            rank_map_json(index, integer(request.query, "first"), integer(request.query, "count")));
      } else if (view == "window") {
        const auto first = integer(request.query, "first");
        const auto last = integer(request.query, "last");
        if (first && last) response = json_response(window_json(index, *first, *last));
      } else if (view == "page.html") {
        response = {
            .content_type = "text/html; charset=utf-8",
            .body = report_page(report_json(index, report_options(), recorded_step(index.run()))),
            .file_name = "flopmeter-" + listed.id + ".html"};
      } else if (view == "curves.csv") {
        response = {.content_type = "text/csv; charset=utf-8",
                    .body = curves_csv(index.overview().timeline),
                    .file_name = "flopmeter-" + listed.id + ".csv"};
      } else if (view.starts_with("rank/")) {
        const auto rank = parse_int(view.substr(5));
        if (rank && *rank >= 0 && *rank <= INT_MAX) {
          auto text = rank_json(index, static_cast<int>(*rank), report_options());
          if (text) response = json_response(*std::move(text));
        }
      }
    });
    return response;
  }

  DashboardOptions options;
  RunList runs;
  std::string recorded_key;
  std::optional<DeviceReport> recorded;
  std::unique_ptr<HttpServer> server;  // last: stops before the runs are destroyed
};

Dashboard::Dashboard(std::unique_ptr<State> state) : state_(std::move(state)) {}
Dashboard::~Dashboard() = default;

Result<std::unique_ptr<Dashboard>> Dashboard::start(const DashboardOptions& options) {
  std::vector<std::string> roots;
  for (const std::string& directory : options.directories) {
    std::error_code code;
    if (!std::filesystem::is_directory(directory, code))
      return Error{ErrorCode::io_error,
                   "cannot read the directory " + printable(directory) + ": " +
                       (code ? code.message() : "Not a directory")};
    roots.push_back(std::filesystem::canonical(directory, code).string());
    if (code)
      return Error{ErrorCode::io_error,
                   "cannot open " + printable(directory) + ": " + code.message()};
  }
  auto state = std::make_unique<State>(options, std::move(roots));
  HttpOptions http{.host = options.host, .port = options.port, .token = options.token};
  http.most_connections = 64;
  http.pause = std::chrono::milliseconds{0};
  if (!options.token.empty()) http.host_names = own_names(options.host);
  std::string error;
  state->server = HttpServer::start(
      http,
      [state = state.get()](const HttpRequest& request) { return state->respond(request); },
      error);
  if (!state->server) return Error{ErrorCode::io_error, error};
  return std::unique_ptr<Dashboard>{new Dashboard{std::move(state)}};
}

std::string Dashboard::address() const {
  const DashboardOptions& options = state_->options;
  const std::string port = std::to_string(state_->server->port());
  std::string host = options.host;
  if (host == "0.0.0.0" || host == "::") {
    std::array<char, HOST_NAME_MAX + 1> name{};
    host = gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
  } else if (host.find(':') != std::string::npos) {
    host = "[" + host + "]";
  }
  return "http://" + host + ":" + port + "/" +
         (options.token.empty() ? "" : "?token=" + options.token);
}

}  // namespace flopmeter
