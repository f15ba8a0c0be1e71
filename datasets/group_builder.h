#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "datasets/task_index.h"
#include "datasets/task_set.h"

namespace evald {

/// Expands names into leaf tasks and groups, like TaskFactory and TaskManager.load
/// (lm_eval/tasks/_factory.py and manager.py, 0.4.13).
class GroupBuilder {
 public:
  explicit GroupBuilder(const TaskIndex& index) : index_(index) {}

  /// Adds the tasks of one request. Throws Error(kUsage) for an unknown name, for a task in two
  /// requests, and for a name that was asked for before with other settings. The same request again
  /// adds nothing.
  void Add(const TaskRequest& request);
  /// Throws Error(kUsage) if a command has the name of a group.
  ResolvedTasks Take();

 private:
  struct Overrides {
    Json values = Json::object();
    std::map<std::string, std::string> where;  ///< pointer -> "file:line"
  };

  /// Sets what the request says of thinking. Throws Error(kInput) for a task that thinking does not
  /// fit.
  void ApplyThinking(LeafTask::State* state) const;
  /// Sets what the request asks for in a task, after the files of the task and of its groups.
  void ApplyRequest(YamlMapping* task) const;

  void AddCommand(const TaskRequest& request);
  [[noreturn]] static void RefuseCommandName(const std::string& where, const std::string& name);
  std::string Build(const TaskEntry& entry, const Overrides& overrides);
  std::string TakePlaceOf(const std::string& name, std::shared_ptr<LeafTask::State> state);
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
  void RefuseOtherSettings(const TaskRequest& one, const TaskRequest& other) const;
  void SpreadLimit(const TaskRequest& request, size_t first);

  const TaskIndex& index_;
  ResolvedTasks out_;
  std::map<std::string, TaskRequest> requests_;  ///< by name
  std::map<std::string, std::string> asked_by_;  ///< leaf -> the requested name that contains it
  std::set<std::string> groups_;
  std::string asking_;
  Overrides asked_for_;                  ///< what the request sets
  std::optional<bool> enable_thinking_;  ///< the request's
  ThinkEnd think_end_;                   ///< the request's
  size_t members_ = 0;                   ///< of groups that were built
  std::vector<std::string> within_;      ///< the groups that are being built, outermost first
};

}  // namespace evald
