#include "orchestrator/api/metrics_text.h"

#include <fmt/format.h>

#include <cmath>

namespace evald::api {
namespace {

std::string LabelValue(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\n') {
      escaped += "\\n";
    } else {
      if (c == '\\' || c == '"') escaped += '\\';
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

void MetricsText::Family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void MetricsText::Sample(const Labels& labels, double value, std::string_view suffix) {
  text_ += name_;
  text_ += suffix;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first,
                         LabelValue(labels[i].second));
  }
  if (!labels.empty()) text_ += '}';
  text_ += std::isinf(value) ? (value > 0 ? " +Inf\n" : " -Inf\n") : fmt::format(" {}\n", value);
}

}  // namespace evald::api
