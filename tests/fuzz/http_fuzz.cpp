// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a request to the dashboard: an HTTP answer or a closed connection, never a crash.
#include <flopmeter/report/dashboard.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace {

using flopmeter::Dashboard;

/// Serves an empty directory until the process ends.
std::uint16_t dashboard_port() {
  static const std::unique_ptr<Dashboard> dashboard = [] {
    std::string directory = std::filesystem::temp_directory_path() / "flopmeter-fuzz-XXXXXX";
    if (mkdtemp(directory.data()) == nullptr) std::abort();
    auto started = Dashboard::start({.directories = {directory}});
    if (!started) std::abort();
    return std::move(*started);
  }();
  static const std::string address = dashboard->address();
  static const int port = std::stoi(address.substr(address.rfind(':') + 1));
  return static_cast<std::uint16_t>(port);
}

/// Whether the request may get a stream, which does not end.
bool is_stream(std::string_view request) {
  return request.find("events") != std::string_view::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(dashboard_port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (is_stream({reinterpret_cast<const char*>(data), size})) return 0;
  const int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (client < 0) std::abort();
  if (connect(client, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    std::abort();
  while (size > 0) {
    const ssize_t sent = send(client, data, size, MSG_NOSIGNAL);
    if (sent <= 0) break;  // answered and closed
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
  shutdown(client, SHUT_WR);
  std::array<char, 65536> answer{};
  const ssize_t got = recv(client, answer.data(), answer.size(), MSG_WAITALL);
  close(client);
  const std::string_view text{answer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  if (!text.empty() && !text.starts_with("HTTP/1.")) std::abort();
  return 0;
}
