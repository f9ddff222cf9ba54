// SPDX-License-Identifier: Apache-2.0
//
// A small web server for looking at a run: it answers GET and HEAD, never touches the file system,
// listens on the loopback unless a token protects it, and bounds what a client can make it do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace flopmeter {

struct HttpRequest {
  std::string path;   ///< "/metrics"
  std::string query;  ///< what follows "?"
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free one
  std::string
      token{};  ///< clients send "Authorization: Bearer <token>"; needed beyond the loopback
  std::vector<std::string>
      host_names{};  ///< names that clients may use beside localhost, 127.0.0.1 and [::1]
};

/// Why `options` may not be used: an address beyond the loopback without a token may not.  Empty:
/// they may.
std::string refusal(const HttpOptions& options);

/// Serves until it is destroyed, on one thread of its own with all signals blocked.
class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  /// `handler` runs on the server's thread; what it throws becomes a 500.  Null with `error` set
  /// where it cannot listen.
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
