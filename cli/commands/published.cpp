// SPDX-License-Identifier: Apache-2.0
//
// flopmeter published: published training results, all or those of similar models.
#include "../command.h"
#include "../model_argument.h"
#include "../run_argument.h"

#include <flopmeter/catalog/model_family.h>
#include <flopmeter/catalog/published.h>
#include <flopmeter/core/text.h>
#include <flopmeter/report/recorded_step.h>
#include <flopmeter/report/style.h>

#include <filesystem>
#include <memory>

namespace flopmeter {
namespace {

struct Options {
  std::string subject;
  std::string device;
  std::string dtype;
  bool json = false;
};

void write_result(JsonWriter& json, const ComparableResult& each) {
  const PublishedResult& row = *each.result;
  json.begin_object()
      .field("id", row.id)
      .field("model", row.model)
      .field("kind", to_string(each.kind))
      .field("active_parameters", each.active_parameters)
      .field("seq_len", row.seq_len)
      .field("device", row.device)
      .field("devices", row.devices)
      .field("dtype", to_string(row.dtype))
      .field("training", row.training)
      .field("mfu", each.mfu)
      .field("recounted", each.recounted)
      .field("reported_mfu", row.mfu)
      .field("reported_hfu", row.hfu)
      .field("reported_tflops_per_device", row.tflops_per_device)
      .field("convention", row.convention)
      .field("source", row.source)
      .field("url", row.url)
      .end_object();
}

std::string percent_or_dash(const std::optional<double>& ratio) {
  return ratio ? percent(*ratio) : "-";
}

std::string table_text(const std::vector<ComparableResult>& results) {
  Table table{"lrrllrrr"};
  table.row({dim("model"),
             dim("active"),
             dim("tokens"),
             dim("device"),
             dim("dtype"),
             dim("devices"),
             dim("MFU"),
             dim("reported")});
  bool reported = false;
  for (const ComparableResult& each : results) {
    const PublishedResult& row = *each.result;
    reported |= each.mfu && !each.recounted;
    table.row({bold(printable(row.model)) + (row.training == "full" ? "" : " " + row.training),
               si(static_cast<double>(each.active_parameters)),
               row.seq_len ? grouped(*row.seq_len) : "-",
               printable(row.device),
               std::string{to_string(row.dtype)},
               row.devices ? grouped(*row.devices) : "-",
               percent_or_dash(each.mfu) + (each.mfu && !each.recounted ? "*" : " "),
               percent_or_dash(row.mfu)});
  }
  return table.text("") + (reported ? dim("* as the source counts FLOPs") + "\n" : "");
}

Exit show(const PublishedComparison& comparison, bool json_wanted) {
  if (json_wanted) {
    return print_json([&](JsonWriter& json) {
      json.begin_object().field("text", comparison.text);
      json.key("results").begin_array();
      for (const ComparableResult& each : comparison.results) write_result(json, each);
      json.end_array().end_object();
    });
  }
  std::string text = comparison.text + "\n";
  if (!comparison.results.empty()) text += "\n" + table_text(comparison.results) + "\n";
  for (const std::string_view link : comparison.links()) text += std::string{link} + "\n";
  return print(text);
}

Exit show_unknown(const std::string& what, bool json_wanted) {
  PublishedComparison none;
  none.text = what + ": no comparison with published results";
  return show(none, json_wanted);
}

/// All results.
Exit show_all(bool json_wanted) {
  PublishedComparison all;
  for (const PublishedResult& result : published_results())
    all.results.push_back(recount_published(result, published_model(result)));
  all.text = std::to_string(all.results.size()) + " published results";
  return show(all, json_wanted);
}

Exit show_run(const RunDirectory& run, bool json_wanted) {
  auto diagnosis = diagnose_run(run);
  if (!diagnosis) return refuse(diagnosis.error());
  if (!diagnosis->published) return show_unknown("model not known", json_wanted);
  return show(*diagnosis->published, json_wanted);
}

Exit run(const Options& options) {
  if (options.subject.empty()) return show_all(options.json);
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(options.subject, ignored) &&
      !fs::exists(options.subject + "/config.json", ignored)) {
    const auto opened = run_argument(options.subject);
    if (!opened) return refuse(opened.error());
    return show_run(*opened, options.json);
  }
  const auto argument = read_model(options.subject);
  if (!argument) return refuse(argument.error());
  if ((*argument).model.bare_parameters)
    return show_unknown("architecture not known", options.json);
  PublishedQuery query = published_query((*argument).model, false);
  query.device = options.device;
  if (!options.dtype.empty()) {
    query.dtype = parse_dtype(options.dtype);
    if (!query.dtype)
      return refuse({ErrorCode::invalid_argument,
                     "'" + printable(options.dtype) + "' is not a dtype",
                     "dtype"});
  }
  return show(compare_published(query), options.json);
}

std::function<Exit()> set_up(Arguments& app) {
  const auto options = std::make_shared<Options>();
  Options& o = *options;
  app.add_option("subject", o.subject, "a model or a run directory (default: all results)");
  app.add_option("--device", o.device, "only results of devices with the peak of this one");
  app.add_option("--dtype", o.dtype, "only results in this dtype");
  app.add_flag("--json", o.json, "print JSON");
  return [options] { return run(*options); };
}

}  // namespace

extern constinit const Command command_published{
    .name = "published",
    .help = "Published MFU of similar models, with sources",
    .order = 27,
    .set_up = set_up};

}  // namespace flopmeter
