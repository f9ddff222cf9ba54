// SPDX-License-Identifier: Apache-2.0
#include <flopmeter/core/embedded_file.h>
#include <flopmeter/report/report.h>

#include <algorithm>
#include <array>
#include <span>

namespace flopmeter {

std::span<const EmbeddedFile> page_assets();
std::string_view dygraphs();

namespace {

std::string_view asset(std::string_view name) {
  const auto assets = page_assets();
  const auto found = std::find_if(
      assets.begin(), assets.end(), [name](const EmbeddedFile& file) { return file.name == name; });
  return found == assets.end() ? std::string_view{} : found->text;
}

/// JSON without any character that HTML gives a meaning: these occur in strings only.
std::string inert(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    switch (c) {
      case '<':
        text.append("\\u003c");
        break;
      case '>':
        text.append("\\u003e");
        break;
      case '&':
        text.append("\\u0026");
        break;
      default:
        text.push_back(c);
    }
  }
  return text;
}

/// The library as it is packaged, without the address of a file that only debuggers want.
std::string_view library() {
  const std::string_view text = dygraphs();
  return text.substr(0, text.rfind("//# sourceMappingURL="));
}

}  // namespace

std::string report_page(std::string_view json) {
  std::string script;
  for (const std::string_view name : {"dom", "headline", "curves", "sections", "roofline", "start"})
    script.append(asset(name));
  const std::string data = inert(json);
  const std::array<std::pair<std::string_view, std::string_view>, 4> parts = {{
      {"{{style}}", asset("style")},
      {"{{data}}", data},
      {"{{library}}", library()},
      {"{{script}}", script},
  }};
  std::string page;
  std::string_view rest = asset("page");
  for (const auto& [mark, text] : parts) {  // in the order of the page
    const std::size_t at = rest.find(mark);
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

}  // namespace flopmeter
