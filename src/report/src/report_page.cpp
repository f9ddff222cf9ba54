// SPDX-License-Identifier: Apache-2.0
#include "page_assets.h"

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

/// In the order of their use.
constexpr std::array<std::string_view, 14> scripts = {"dom",
                                                      "address",
                                                      "source",
                                                      "headline",
                                                      "chart_marks",
                                                      "curves",
                                                      "sections",
                                                      "roofline",
                                                      "ranks",
                                                      "timeline",
                                                      "run",
                                                      "compare",
                                                      "runs",
                                                      "start"};

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

/// The page with its parts in place of their marks.
struct PageParts {
  std::string policy, style, data, scripts;
};
std::string fill(const PageParts& parts) {
  const std::array<std::pair<std::string_view, std::string_view>, 4> marks = {{
      {"{{policy}}", parts.policy},
      {"{{style}}", parts.style},
      {"{{data}}", parts.data},
      {"{{scripts}}", parts.scripts},
  }};
  std::string page;
  std::string_view rest = asset("page");
  for (const auto& [mark, text] : marks) {  // in the order of the page
    const std::size_t at = rest.find(mark);
    page.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + mark.size());
  }
  return page.append(rest);
}

std::string element(std::string_view begin, std::string_view content, std::string_view end) {
  return std::string{begin}.append(content).append(end);
}

}  // namespace

std::string report_page(std::string_view json) {
  std::string script = "\"use strict\";\n";
  for (const std::string_view name : scripts) script.append(asset(name));
  return fill(
      {.policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                 "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">",
       .style = element("<style>", asset("style"), "</style>"),
       .data = element("<script type=\"application/json\" id=\"data\">", inert(json), "</script>"),
       .scripts = element("<script>", library(), "</script>\n") +
                  element("<script>", script, "</script>")});
}

std::string live_page() {
  PageParts parts{.style = "<link rel=\"stylesheet\" href=\"/assets/style.css\">"};
  parts.scripts = "<script src=\"/assets/dygraph.js\"></script>\n";
  for (const std::string_view name : scripts)
    parts.scripts += element("<script src=\"/assets/", name, ".js\"></script>\n");
  return fill(parts);
}

std::optional<std::string_view> page_asset(std::string_view name) {
  if (name == "dygraph.js") return library();
  if (name == "style.css") return asset("style");
  for (const std::string_view script : scripts) {
    if (name == std::string{script} + ".js") return asset(script);
  }
  return std::nullopt;
}

}  // namespace flopmeter
