// SPDX-License-Identifier: Apache-2.0
//
// Who may read: the names of this server, and its token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flopmeter {

/// Whether a Host header names this machine or one of `names`: a page of another site whose name
/// resolves to this address does not.
bool is_known_host(std::string_view header, const std::vector<std::string>& names);

/// Parts of a request that may hold the token.
struct Credentials {
  std::string_view query;
  std::string_view authorization;
  std::string_view cookies;
};
enum class Access {
  refused,
  granted,
  by_address,  ///< the token is in the address: exchange it for a cookie
};
/// Takes the same time for any wrong token.
Access check_access(const Credentials& given,
                    const std::string& token,
                    std::string_view cookie_name);

}  // namespace flopmeter
