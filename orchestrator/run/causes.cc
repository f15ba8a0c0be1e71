#include "orchestrator/run/causes.h"

#include <fmt/format.h>

#include <map>

#include "base/text.h"

namespace evald {

std::string CauseKey(const std::string& text) {
  std::string key;
  for (const std::string& word : Split(text, ' ')) {
    const bool varies = word.find_first_of("/0123456789") != std::string::npos;
    key += (varies ? "#" : word) + " ";
  }
  return key;
}

std::vector<std::string> ByCause(const std::vector<Missing>& all) {
  struct Group {
    const Missing* first = nullptr;
    size_t parts = 0;
  };
  std::vector<std::string> order;
  std::map<std::string, Group> groups;
  for (const Missing& missing : all) {
    const std::string key = CauseKey(missing.cause);
    Group& group = groups[key];
    if (group.parts++ > 0) continue;
    group.first = &missing;
    order.push_back(key);
  }
  std::vector<std::string> lines;
  for (const std::string& key : order) {
    const Group& group = groups.at(key);
    const std::string more =
        group.parts == 1 ? "" : fmt::format(", and {} more parts", group.parts - 1);
    lines.push_back(fmt::format("{}{}: {}", group.first->what, more, group.first->cause));
  }
  return lines;
}

}  // namespace evald
