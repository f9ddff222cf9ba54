// SPDX-License-Identifier: Apache-2.0
//
// A small HTTP server. It answers GET and HEAD, does not access the file system, listens on
// loopback unless a token protects it, and limits the resources of each client.
#pragma once

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
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: a free port
  std::string
      token{};  ///< clients must send "Authorization: Bearer <token>"; needed beyond the loopback
  std::vector<std::string>
      host_names{};  ///< names that clients may use in addition to localhost, 127.0.0.1, and [::1]
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
