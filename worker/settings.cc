#include "worker/settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace evald {

Settings::Settings(const std::string& engine, const Json& settings,
                   const std::vector<std::string>& known)
    : json_(settings.is_null() ? Json::object() : settings),
      where_(fmt::format("engine '{}'", engine)) {
  if (!json_.is_object()) {
    throw Error(ErrorKind::kUsage, fmt::format("{}: the settings are {}, expected an object",
                                               where_, json_.type_name()));
  }
  for (const auto& [key, value] : json_.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: unknown setting '{}'{}", where_, key, Suggestion(key, known)),
                known.empty() ? "it takes no settings" : "the settings are " + Join(known, ", "));
  }
}

bool Settings::Has(const std::string& key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

void Settings::Refuse(const std::string& key, const std::string& expected) const {
  const auto found = json_.find(key);
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: key '{}': found {}, expected {}", where_, key,
                          found == json_.end() ? "nothing" : ToLine(*found), expected));
}

}  // namespace evald
