#include "orchestrator/cli/run_tasks.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "orchestrator/cli/run_text.h"

namespace evald::cli {
namespace {

class Forest {
 public:
  Forest(const Json& run, bool all) : run_(run), all_(all) {
    for (const Json& task : run.at("progress").at("tasks")) tasks_[task.value("task", "")] = &task;
    const auto groups = run.find("groups");
    if (groups == run.end() || !groups->is_object()) return;
    for (const auto& [group, children] : groups->items()) {
      for (const Json& child : children) {
        if (!child.is_string()) continue;
        children_[group].push_back(child.get<std::string>());
        parents_.try_emplace(child.get<std::string>(), group);
      }
    }
  }

  std::vector<TaskRow> Rows() {
    for (const Json& task : run_.at("progress").at("tasks")) {
      const std::string root = RootOf(task.value("task", ""));
      if (!placed_.contains(root)) Place(root, 0);
    }
    return std::move(rows_);
  }

 private:
  static constexpr size_t kDepthMax = 16;

  std::string RootOf(std::string name) const {
    for (size_t depth = 0; depth < kDepthMax && parents_.contains(name); ++depth)
      name = parents_.at(name);
    return name;
  }

  // Adds the row, and with `all_` those below. Returns the documents of its tasks that stand
  // nowhere else, and how many of these are scored.
  std::pair<int64_t, int64_t> Place(const std::string& name, size_t depth) {
    placed_.insert(name);
    const size_t place = rows_.size();
    rows_.push_back({ForTerminal(name), depth, !tasks_.contains(name), 0, 0, ""});
    TaskRow row = rows_.back();
    if (row.group) {
      row.headline = GroupHeadline(name);
      const auto children = children_.find(name);
      for (const std::string& child :
           children == children_.end() ? std::vector<std::string>() : children->second) {
        const bool known = tasks_.contains(child) || children_.contains(child);
        if (!known || placed_.contains(child) || depth >= kDepthMax) continue;
        const auto [documents, scored] = Place(child, depth + 1);
        row.documents += documents;
        row.scored += scored;
      }
      if (!all_) rows_.resize(place + 1);
    } else {
      row.documents = tasks_[name]->value("documents", int64_t{0});
      row.scored = tasks_[name]->value("scored", int64_t{0});
      row.headline = TextOf(*tasks_[name], "headline");
    }
    rows_[place] = row;
    return {row.documents, row.scored};
  }

  std::string GroupHeadline(const std::string& group) const {
    const Json score = run_.value("scores", Json::object()).value(group, Json());
    if (!score.is_object() || !score.value("value", Json()).is_number()) return "";
    return fmt::format("{} {:.4f}", TextOf(score, "metric"), score.at("value").get<double>());
  }

  const Json& run_;
  const bool all_;
  std::map<std::string, const Json*> tasks_;
  std::map<std::string, std::vector<std::string>> children_;
  std::map<std::string, std::string> parents_;  // the first group
  std::set<std::string> placed_;
  std::vector<TaskRow> rows_;
};

}  // namespace

std::vector<TaskRow> TaskRows(const Json& run, bool all) { return Forest(run, all).Rows(); }

std::vector<std::string> NamesUnderScoredGroups(const Json& run) {
  std::vector<std::string> names, open;
  const Json groups = run.value("groups", Json::object());
  const Json scores = run.value("scores", Json::object());
  for (const auto& [group, children] : groups.items()) {
    if (scores.contains(group)) open.push_back(group);
  }
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string group = open.back();
    open.pop_back();
    for (const Json& child : groups.value(group, Json::array())) {
      if (!child.is_string() || !seen.insert(child.get<std::string>()).second) continue;
      names.push_back(child.get<std::string>());
      open.push_back(names.back());
    }
  }
  return names;
}

}  // namespace evald::cli
