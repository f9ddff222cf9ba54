// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP server. It answers GET and HEAD, does not access the file system, listens on
// loopback unless a token protects it, and limits the resources of each client.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace flopmeter {

struct HttpRequest {
  std::string path;   ///< "/metrics"
  std::string query;  ///< text after "?"
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  std::string file_name{};  ///< under which a browser saves the body; empty: it shows it
  /// Makes the response a stream of server-sent events: called twice a second for the text to send
  /// next, which may be empty.
  std::function<std::string()> events{};
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: a free port
  /// Clients must send it as "Authorization: Bearer <token>", or once as "?token=<token>", which
  /// sets a cookie.  Needed beyond the loopback.
  std::string token{};
  std::vector<std::string>
      host_names{};  ///< names that clients may use in addition to localhost, 127.0.0.1, and [::1]
  int most_connections = 32;  ///< half of them for event streams
  /// After each batch of 8 events; bounds the CPU time that clients take from a training process.
  /// 0: the process exists to serve, so there is no pause and the thread has normal priority.
  std::chrono::milliseconds pause{5};
};

/// Why `options` are refused: an address other than loopback requires a token. Empty if they are
/// valid.
std::string refusal(const HttpOptions& options);

/// Serves in a separate thread, with all signals blocked, until destruction.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  /// `handler` runs in the server thread; an exception becomes status 500. Returns null and sets
  /// `error` if it cannot listen.
  static std::unique_ptr<HttpServer> start(const HttpOptions& options,
                                           Handler handler,
                                           std::string& error);

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;
  HttpServer(HttpServer&&) = delete;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer();

  [[nodiscard]] std::uint16_t port() const;

 private:
  class State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flopmeter
