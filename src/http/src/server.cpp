// SPDX-License-Identifier: Apache-2.0
//
// The only file that includes Boost.Beast.
#include "access.h"

#include <flopmeter/http/server.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <exception>
#include <list>
#include <optional>
#include <string_view>
#include <thread>

namespace flopmeter {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using Code = boost::system::error_code;

constexpr std::uint32_t most_header_bytes = 8 * 1024;
constexpr int at_once = 8;                   // events per batch
constexpr std::chrono::seconds patience{5};  // per request, and per response
constexpr std::chrono::milliseconds event_interval{500};
constexpr std::chrono::seconds heartbeat{15};  // of an event stream without news

class Connection;

struct Shared {
  HttpOptions options;
  HttpServer::Handler handler;
  std::uint16_t port = 0;
  int connections = 0;
  int event_streams = 0;
  std::list<Connection*> waiting{};  ///< for a request, longest first
};

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  Code failed;
  const auto address = asio::ip::make_address(host, failed);
  return !failed && address.is_loopback();
}

using Response = http::response<http::string_body>;

Response plain(http::status status, std::string text) {
  Response response{status, 11};
  response.set(http::field::content_type, "text/plain; charset=utf-8");
  response.body() = std::move(text);
  return response;
}

/// One connection.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, std::shared_ptr<Shared> shared)
      : stream_(std::move(socket)), shared_(std::move(shared)), timer_(stream_.get_executor()) {
    ++shared_->connections;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection(Connection&&) = delete;
  Connection& operator=(Connection&&) = delete;
  ~Connection() {
    --shared_->connections;
    if (events_) --shared_->event_streams;
    shared_->waiting.remove(this);
  }

  void close() {
    shared_->waiting.remove(this);
    Code ignored;
    stream_.socket().close(ignored);
  }

  void read() {
    shared_->waiting.push_back(this);
    parser_.emplace();
    parser_->header_limit(most_header_bytes);
    parser_->body_limit(0);
    stream_.expires_after(patience);
    http::async_read_header(
        stream_,
        buffer_,
        *parser_,
        [self = shared_from_this()](Code failed, std::size_t /*bytes*/) { self->answer(failed); });
  }

 private:
  [[nodiscard]] Response respond() {
    const auto& request = parser_->get();
    if (!is_known_host(view(request[http::field::host]), shared_->options.host_names))
      return plain(http::status::forbidden, "unknown host name\n");
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      Response refused = plain(http::status::method_not_allowed, "GET and HEAD only\n");
      refused.set(http::field::allow, "GET, HEAD");
      return refused;
    }
    const std::string_view target = view(request.target());
    const std::size_t mark = target.find('?');
    const std::string path{target.substr(0, mark)};
    const std::string query{mark == std::string_view::npos ? "" : target.substr(mark + 1)};
    if (const std::string& token = shared_->options.token; !token.empty()) {
      // Ports of one host share their cookies.
      const std::string cookie = "flopmeter_" + std::to_string(shared_->port);
      const Access access =
          check_access({.query = query,
                        .authorization = view(request[http::field::authorization]),
                        .cookies = view(request[http::field::cookie])},
                       token,
                       cookie);
      if (access == Access::by_address) {
        Response accepted = plain(http::status::see_other, "");
        accepted.set(http::field::location, "/");  // keeps the token out of the address bar
        accepted.set(http::field::set_cookie,
                     cookie + "=" + token + "; Path=/; HttpOnly; SameSite=Lax");
        return accepted;
      }
      if (access == Access::refused) {
        Response refused = plain(http::status::unauthorized, "token required\n");
        refused.set(http::field::www_authenticate, "Bearer");
        return refused;
      }
    }
    try {
      HttpResponse made = shared_->handler({.path = path, .query = query});
      if (made.events && request.method() == http::verb::get) {
        if (shared_->event_streams >= shared_->options.most_connections / 2)
          return plain(http::status::service_unavailable, "too many event streams\n");
        ++shared_->event_streams;
        events_ = std::move(made.events);
      }
      Response response{http::int_to_status(static_cast<unsigned>(made.status)), 11};
      response.set(http::field::content_type, made.content_type);
      if (!made.file_name.empty())
        response.set(http::field::content_disposition,
                     "attachment; filename=\"" + made.file_name + "\"");
      response.body() = std::move(made.body);
      return response;
    } catch (...) {
      return plain(http::status::internal_server_error, "internal error\n");
    }
  }

  void answer(Code failed) {
    shared_->waiting.remove(this);
    bool keep = false;
    if (failed && failed.category() == boost::system::system_category())
      return;  // the connection is closed
    if (failed == http::error::end_of_stream || failed == beast::error::timeout) return;
    const bool body = failed ? failed == http::error::body_limit
                             : parser_->chunked() || parser_->content_length().value_or(0) != 0;
    if (failed == http::error::header_limit || failed == http::error::buffer_overflow) {
      response_ = plain(http::status::request_header_fields_too_large, "request too large\n");
    } else if (body) {
      response_ = plain(http::status::payload_too_large, "request body not allowed\n");
    } else if (failed) {
      response_ = plain(http::status::bad_request, "not understood\n");
    } else {
      response_ = respond();
      keep = parser_->get().keep_alive() && !events_;
    }
    response_.set("Content-Security-Policy",
                  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                  "connect-src 'self'; "
                  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set(http::field::cache_control, "no-store");
    response_.keep_alive(keep);
    if (!events_) response_.prepare_payload();
    const bool head = parser_->is_header_done() && parser_->get().method() == http::verb::head;
    stream_.expires_after(patience);
    auto done = [self = shared_from_this(), keep](Code write_failed, std::size_t /*bytes*/) {
      if (!write_failed && keep) return self->read();
      if (!write_failed && self->events_) return self->stream_events();
      Code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    };
    if (head || events_) {
      head_.emplace(response_);
      http::async_write_header(stream_, *head_, std::move(done));
    } else {
      http::async_write(stream_, response_, std::move(done));
    }
  }

  void stream_events() {
    stream_.expires_never();
    written_ = Clock::now();
    // Completes if the client closes the connection or sends anything, which it must not.
    stream_.socket().async_read_some(
        asio::buffer(received_), [self = shared_from_this()](Code /*failed*/, std::size_t /*n*/) {
          self->close();
          self->timer_.cancel();
        });
    send_events();
  }

  void send_events() {
    if (!writing_) {
      try {
        text_ = events_();
      } catch (...) {
        return close();
      }
      if (text_.empty() && Clock::now() - written_ > heartbeat) text_ = ":\n\n";
      if (!text_.empty()) {
        writing_ = true;
        written_ = Clock::now();
        asio::async_write(stream_.socket(),
                          asio::buffer(text_),
                          [self = shared_from_this()](Code /*failed*/, std::size_t /*n*/) {
                            self->writing_ = false;
                          });
      }
    } else if (Clock::now() - written_ > patience) {
      return close();  // a client that does not read
    }
    timer_.expires_after(event_interval);
    timer_.async_wait([self = shared_from_this()](Code failed) {
      if (!failed && self->stream_.socket().is_open()) self->send_events();
    });
  }

  using Clock = std::chrono::steady_clock;
  beast::tcp_stream stream_;
  std::shared_ptr<Shared> shared_;
  asio::steady_timer timer_;
  std::function<std::string()> events_;
  std::string text_;
  std::array<char, 1> received_{};
  bool writing_ = false;
  Clock::time_point written_;
  beast::flat_buffer buffer_{most_header_bytes};
  std::optional<http::request_parser<http::empty_body>> parser_;
  Response response_;
  std::optional<http::response_serializer<http::string_body>> head_;
};

}  // namespace

std::string refusal(const HttpOptions& options) {
  if (options.host.empty()) return "the address to listen on is empty";
  if (!options.token.empty() || is_loopback(options.host)) return {};
  return "refusing to listen on " + options.host + " without a token; set a token or use 127.0.0.1";
}

class HttpServer::State {
 public:
  State(const HttpOptions& options, Handler handler)
      : shared_(std::make_shared<Shared>(Shared{options, std::move(handler)})),
        acceptor_(context_),
        pause_(context_) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  State(State&&) = delete;
  State& operator=(State&&) = delete;
  ~State() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  /// Why it cannot listen; empty on success.
  std::string listen() {
    const HttpOptions& options = shared_->options;
    Code failed;
    const auto address =
        asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, failed);
    if (failed) return options.host + " is not a valid IP address";
    const tcp::endpoint endpoint{address, options.port};
    const auto step = [&failed](auto&& call) {
      if (!failed) call();
    };
    step([&] { acceptor_.open(endpoint.protocol(), failed); });
    step([&] { fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC); });
    step([&] { acceptor_.set_option(tcp::acceptor::reuse_address(true), failed); });
    step([&] { acceptor_.bind(endpoint, failed); });
    step([&] { acceptor_.listen(options.most_connections, failed); });
    if (failed) {
      return "cannot listen on " + options.host + ":" + std::to_string(options.port) + ": " +
             failed.message();
    }
    shared_->port = acceptor_.local_endpoint(failed).port();
    return {};
  }

  void run() {
    accept();
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread{[this] {
        pthread_setname_np(pthread_self(), "flopmeter-http");
        constexpr int niceness = 10;  // lower priority than the training
        if (shared_->options.pause.count() > 0)
          static_cast<void>(setpriority(PRIO_PROCESS, 0, niceness));
        while (!context_.stopped()) {
          try {
            context_.run_one_for(std::chrono::milliseconds{500});  // a wake-up may be lost
            for (int i = 0; i < at_once && context_.poll_one() != 0; ++i) {
            }
          } catch (...) {  // an error of one client must not stop the server
          }
          if (shared_->options.pause.count() > 0)
            std::this_thread::sleep_for(shared_->options.pause);
        }
      }};
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[nodiscard]] std::uint16_t port() const { return shared_->port; }

 private:
  void accept() {
    acceptor_.async_accept([this](Code failed, tcp::socket socket) {
      if (failed == asio::error::operation_aborted) return;
      if (failed) {  // for example, no file descriptors: wait instead of spinning
        pause_.expires_after(std::chrono::milliseconds{200});
        pause_.async_wait([this](Code aborted) {
          if (!aborted) accept();
        });
        return;
      }
      accept();  // first, so that an error of this client does not stop accepting
      fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
      if (shared_->connections >= shared_->options.most_connections) {
        if (shared_->waiting.empty()) return;  // closes the new connection
        shared_->waiting.front()->close();     // a slow client must not lock out the others
      }
      std::make_shared<Connection>(std::move(socket), shared_)->read();
    });
  }

  std::shared_ptr<Shared> shared_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() = default;
std::uint16_t HttpServer::port() const {
  return state_->port();
}

std::unique_ptr<HttpServer> HttpServer::start(const HttpOptions& options,
                                              Handler handler,
                                              std::string& error) {
  error = refusal(options);
  if (!error.empty()) return nullptr;
  try {
    auto state = std::make_unique<State>(options, std::move(handler));
    error = state->listen();
    if (!error.empty()) return nullptr;
    state->run();
    return std::unique_ptr<HttpServer>{new HttpServer{std::move(state)}};
  } catch (const std::exception& problem) {
    error = std::string{"cannot start the server: "} + problem.what();
    return nullptr;
  }
}

}  // namespace flopmeter
