#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace evald::api {

/// Writes Prometheus's text format (exposition format 0.0.4).
class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  /// Begins a family: `type` is counter, gauge or histogram.
  void Family(std::string_view name, std::string_view type, std::string_view help);
  /// One sample of the last family. `suffix` is "", "_bucket", "_sum" or "_count".
  void Sample(const Labels& labels, double value, std::string_view suffix = "");
  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace evald::api
