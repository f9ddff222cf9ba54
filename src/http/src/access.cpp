// SPDX-License-Identifier: Apache-2.0
#include "access.h"

#include <algorithm>
#include <array>

namespace flopmeter {
namespace {

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < secret.size();
       ++i) {  // constant time, so that the duration reveals nothing about the token
    const char c = i < given.size() ? given[i] : '\0';
    difference |= static_cast<unsigned>(static_cast<unsigned char>(c ^ secret[i]));
  }
  return difference == 0;
}

/// Name in a Host header, without the port.
std::string_view host_name(std::string_view host) {
  const std::size_t address_end = host.starts_with('[') ? host.find(']') : 0;
  return host.substr(0, host.find(':', address_end));
}

/// The value of `name` in "a=1&b=2" or "a=1; b=2".
std::string_view value_of(std::string_view text, char separator, std::string_view name) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    std::string_view pair = text.substr(0, end);
    while (pair.starts_with(' ')) pair.remove_prefix(1);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('='))
      return pair.substr(name.size() + 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

}  // namespace

bool is_known_host(std::string_view header, const std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 3> always = {"localhost", "127.0.0.1", "[::1]"};
  const std::string_view host = host_name(header);
  return std::find(always.begin(), always.end(), host) != always.end() ||
         std::find(names.begin(), names.end(), host) != names.end();
}

Access check_access(const Credentials& given,
                    const std::string& token,
                    std::string_view cookie_name) {
  if (same_secret(value_of(given.query, '&', "token"), token)) return Access::by_address;
  return same_secret(given.authorization, "Bearer " + token) ||
                 same_secret(value_of(given.cookies, ';', cookie_name), token)
             ? Access::granted
             : Access::refused;
}

}  // namespace flopmeter
