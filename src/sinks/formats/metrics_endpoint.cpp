// SPDX-License-Identifier: Apache-2.0
//
// GET /metrics for Prometheus.  Off by default.  If the port is in use, that is reported once and
// retried.
#include "../src/prometheus_text.h"

#include <flopmeter/core/text.h>
#include <flopmeter/http/server.h>

#include <mutex>

namespace flopmeter {
namespace {

class MetricsEndpointSink final : public Sink {
 public:
  MetricsEndpointSink(const RunContext& run, HttpOptions options)
      : options_(std::move(options)), metrics_(run) {}

  Result<void> write(const StepRecord& record) override {
    {
      const std::lock_guard lock{mutex_};
      metrics_.add(record);
    }
    return flush();
  }

  Result<void> flush() override {
    if (server_ || finished_) return {};
    std::string error;
    const auto answer = [this](const HttpRequest& request) -> HttpResponse {
      if (request.path != "/metrics") return {.status = 404, .body = "see /metrics\n"};
      const std::lock_guard lock{mutex_};
      return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_.text()};
    };
    server_ = HttpServer::start(options_, answer, error);
    return server_ ? Result<void>{} : Error{ErrorCode::io_error, error};
  }

  /// Frees the port: the program may start another monitor.
  Result<void> finish(const std::vector<Finding>& /*findings*/) override {
    finished_ = true;
    server_.reset();
    return {};
  }

 private:
  HttpOptions options_;
  bool finished_ = false;
  std::mutex mutex_;
  PrometheusText metrics_;
  std::unique_ptr<HttpServer> server_;  // last: stops before the metrics are destroyed
};

/// "host:port" or "host:port#token".
Result<std::unique_ptr<Sink>> make(const RunContext& run, std::string_view target) {
  HttpOptions options;
  const std::size_t hash = target.find('#');
  if (hash != std::string_view::npos) options.token = std::string{target.substr(hash + 1)};
  const std::string_view address = target.substr(0, hash);
  const std::size_t colon = address.rfind(':');
  const auto port =
      parse_int(colon == std::string_view::npos ? address : address.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return Error{
        ErrorCode::invalid_argument,
        "metrics address '" + printable(address) + "' must be host:port, such as 127.0.0.1:9095"};
  }
  options.port = static_cast<std::uint16_t>(*port);
  if (colon != std::string_view::npos && colon != 0)
    options.host = std::string{address.substr(0, colon)};
  if (options.host.starts_with('[') && options.host.ends_with(']'))
    options.host = options.host.substr(1, options.host.size() - 2);
  if (!options.token.empty()) options.host_names.push_back(options.host);
  if (const std::string why = refusal(options); !why.empty())
    return Error{ErrorCode::invalid_argument, why};
  return std::unique_ptr<Sink>{std::make_unique<MetricsEndpointSink>(run, std::move(options))};
}

}  // namespace

extern constinit const SinkPlugin sink_metrics_endpoint{
    "metrics_endpoint", "serve /metrics for Prometheus on host:port[#token]", make};

}  // namespace flopmeter
