// SPDX-License-Identifier: Apache-2.0
#include "../command.h"
#include "../doctor_checks.h"

#include <flopmeter/core/text.h>
#include <flopmeter/report/style.h>

#include <cstdlib>
#include <memory>

namespace flopmeter {
namespace {

struct Request {
  std::string python;
  bool json = false;
};

/// The Python that started this program, or the one of the active environment.
std::string default_python() {
  const char* own = std::getenv("FLOPMETER_PYTHON");
  return own != nullptr && *own != '\0' ? own : "python3";
}

Exit print_checks(const std::vector<Check>& checks) {
  Table table{"lll"};
  for (const Check& check : checks) {
    const std::string recommendation =
        check.recommendation.empty() ? "" : "; " + check.recommendation;
    table.row({check.ok ? accent("ok") : warning("missing"),
               check.name,
               printable(check.detail) + printable(recommendation)});
  }
  return print(table.text(""));
}

Exit print_as_json(const std::vector<Check>& checks) {
  return print_json([&](JsonWriter& json) {
    json.begin_object().field("schema", "flopmeter.doctor/1").key("checks").begin_array();
    for (const Check& check : checks) {
      json.begin_object().field("name", check.name).field("ok", check.ok);
      json.field("detail", check.detail).key("recommendation");
      check.recommendation.empty() ? json.null() : json.value(check.recommendation);
      json.end_object();
    }
    json.end_array().end_object();
  });
}

Exit run(const Request& request) {
  std::vector<Check> checks = check_python(request.python);
  for (Check& check : check_machine()) checks.push_back(std::move(check));
  return request.json ? print_as_json(checks) : print_checks(checks);
}

std::function<Exit()> set_up(Arguments& app) {
  auto request = std::make_shared<Request>();
  request->python = default_python();
  app.add_option("--python", request->python, "Python interpreter to check (python3)");
  app.add_flag("--json", request->json, "print JSON");
  return [request] { return run(*request); };
}

}  // namespace

extern constinit const Command command_doctor{.name = "doctor",
                                              .help = "Check the environment and suggest fixes",
                                              .order = 90,
                                              .set_up = set_up};

}  // namespace flopmeter
