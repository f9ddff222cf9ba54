// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/http/server.h>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace flopmeter {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const timeval patience{20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

std::string read_all(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(size));
  close(fd);
  return text;
}

class Server : public testing::Test {
 protected:
  void start(HttpOptions options = {}) {
    std::string error;
    server_ = HttpServer::start(
        options,
        [](const HttpRequest& request) -> HttpResponse {
          if (request.path == "/throw") throw 1;  // NOLINT(hicpp-exception-baseclass)
          if (request.path == "/events") {
            HttpResponse stream{.content_type = "text/event-stream"};
            stream.events = [n = 0]() mutable -> std::string {
              if (++n > 2) throw 1;  // NOLINT(hicpp-exception-baseclass): ends the stream
              return "data: " + std::to_string(n) + "\n\n";
            };
            return stream;
          }
          if (request.path != "/metrics") return {.status = 404, .body = "nothing\n"};
          return {.body = "answer " + request.query + "\n"};
        },
        error);
    ASSERT_TRUE(server_) << error;
  }
  std::string ask(const std::string& request) {
    const int fd = connect_to(server_->port());
    EXPECT_GE(fd, 0);
    EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    return read_all(fd);
  }
  std::string get(const std::string& path,
                  const std::string& host = "localhost",
                  const std::string& more = "") {
    return ask("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + more +
               "\r\n");
  }
  std::unique_ptr<HttpServer> server_;
};

TEST_F(Server, sends_security_headers) {
  start();
  const std::string answer = get("/metrics?x=1");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\n\r\nanswer x=1\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(answer, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(answer, HasSubstr("Referrer-Policy: no-referrer"));
  EXPECT_THAT(answer, Not(HasSubstr("Access-Control-Allow")));
  EXPECT_THAT(get("/etc/passwd"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(get("/throw"), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(get("/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, serves_only_known_host_names) {
  start({.host_names = {"trainer.example"}});
  for (const std::string host : {"localhost", "127.0.0.1:9095", "[::1]:80", "trainer.example:1"}) {
    EXPECT_THAT(get("/metrics", host), StartsWith("HTTP/1.1 200")) << host;
  }
  for (const std::string host : {"evil.example",
                                 "localhost.evil.example",
                                 "",
                                 "[",
                                 "[::1",
                                 "[::1]evil.example",
                                 "127.0.0.1.evil"}) {
    EXPECT_THAT(get("/metrics", host), StartsWith("HTTP/1.1 403")) << host;
  }
  EXPECT_THAT(ask("GET /metrics HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 403"));
}

TEST_F(Server, accepts_only_get_and_head_without_a_body) {
  start();
  const std::string tail = " /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  EXPECT_THAT(ask("POST" + tail + "\r\n"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask("DELETE" + tail + "\r\n"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask("GET" + tail + "Content-Length: 3\r\n\r\nabc"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(ask("GET" + tail + "Transfer-Encoding: chunked\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  const std::string head = ask("HEAD" + tail + "\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(head, Not(HasSubstr("answer")));
  EXPECT_THAT(ask("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_F(Server, refuses_a_request_of_more_than_eight_kib) {
  start();
  EXPECT_THAT(get("/metrics", "localhost", "X: " + std::string(9000, 'x') + "\r\n"),
              StartsWith("HTTP/1.1 431"));
}

TEST_F(Server, requires_a_token_unless_it_listens_on_loopback) {
  EXPECT_THAT(refusal({.host = "0.0.0.0"}), HasSubstr("without a token"));
  EXPECT_EQ(refusal({.host = "::1"}), "");
  start({.host = "0.0.0.0", .token = "secret"});
  EXPECT_THAT(get("/metrics"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(get("/metrics", "localhost", "Authorization: Bearer secreT\r\n"),
              StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(get("/metrics", "localhost", "Authorization: Bearer secret\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(Server, reports_a_port_in_use) {
  start();
  std::string error;
  EXPECT_FALSE(HttpServer::start(
      {.port = server_->port()}, [](const HttpRequest&) { return HttpResponse{}; }, error));
  EXPECT_THAT(error, HasSubstr(std::to_string(server_->port())));
}

TEST_F(Server, streams_events_until_the_source_ends) {
  start();
  const std::string answer = get("/events");
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length")));
  EXPECT_THAT(answer, HasSubstr("data: 1\n\ndata: 2\n\n"));
  EXPECT_THAT(ask("HEAD /events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
              Not(HasSubstr("data: 1")));
}

TEST_F(Server, a_token_in_the_address_becomes_a_cookie) {
  start({.token = "secret"});
  const std::string answer = get("/metrics?token=secret");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 303"));
  const std::string cookie = "flopmeter_" + std::to_string(server_->port()) + "=secret";
  EXPECT_THAT(answer, HasSubstr("Set-Cookie: " + cookie + "; Path=/; HttpOnly"));
  EXPECT_THAT(get("/metrics", "localhost", "Cookie: a=b; " + cookie + "\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(get("/metrics?token=secre"), StartsWith("HTTP/1.1 401"));
}

TEST_F(Server, limits_and_drops_slow_clients) {
  start();
  std::vector<int> slow;
  for (int i = 0; i < 200; ++i) {
    const int fd = connect_to(server_->port());
    if (fd < 0) break;
    static_cast<void>(send(fd, "GET /metrics HTT", 16, MSG_NOSIGNAL));
    slow.push_back(fd);
  }
  ASSERT_GT(slow.size(), 32U);
  const auto start_time = std::chrono::steady_clock::now();
  std::string answer;
  while (answer.empty() &&
         std::chrono::steady_clock::now() - start_time < std::chrono::seconds{15}) {
    const int fd = connect_to(server_->port());
    const std::string request =
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    if (fd >= 0 && send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
      answer = read_all(fd);
    } else if (fd >= 0) {
      close(fd);
    }
    if (answer.empty()) std::this_thread::sleep_for(std::chrono::milliseconds{200});
  }
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));  // after the slow clients were dropped
  for (const int fd : slow) close(fd);
}

TEST_F(Server, slows_down_a_client_that_sends_requests_continuously) {
  start();
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  int answered = 0;
  for (; seconds() < 0.5; ++answered) ASSERT_THAT(get("/metrics"), StartsWith("HTTP/1.1 200"));
  EXPECT_LE(answered, 600 * seconds());  // thousands per second without the pause
}

}  // namespace
}  // namespace flopmeter
