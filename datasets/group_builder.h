#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "datasets/task_index.h"
#include "datasets/task_set.h"

namespace evald {

/// Expands names into leaf tasks and groups, as TaskFactory and TaskManager.load do
/// (lm_eval/tasks/_factory.py and manager.py, 0.4.13).
class GroupBuilder {
 public:
  explicit GroupBuilder(const TaskIndex& index) : index_(index) {}

  /// Adds what one request asks for. Throws Error(kUsage) for a name that is not known, and for a
  /// task that two requests ask for.
  void Add(const TaskRequest& request);
  ResolvedTasks Take() { return std::move(out_); }

 private:
  struct Overrides {
    Json values = Json::object();
    std::map<std::string, std::string> where;  ///< pointer -> "file:line"
  };

  std::string Build(const TaskEntry& entry, const Overrides& overrides);
  std::string BuildTask(const YamlMapping& yaml, const std::string& path,
                        const Overrides& overrides);
  std::string BuildGroup(const std::string& name, const YamlMapping& yaml, const Json& value,
                         const std::string& pointer, const std::string& path,
                         const Overrides& overrides);
  void BuildMember(const YamlMapping& yaml, const Json& member, const std::string& pointer,
                   const std::string& group, const std::string& path, const Overrides& overrides,
                   std::vector<std::string>* children);
  std::vector<std::string> BuildEntryAsMember(const TaskEntry& entry, const Overrides& overrides);
  [[noreturn]] void RefuseName(const std::string& where, const std::string& name) const;
  void SpreadLimit(const TaskRequest& request, size_t first);

  const TaskIndex& index_;
  ResolvedTasks out_;
  std::map<std::string, std::string> asked_by_;  ///< leaf -> the name that brought it in
  std::set<std::string> groups_;
  std::string asking_;
  int depth_ = 0;
};

}  // namespace evald
