#include "datasets/task_set.h"

#include <fmt/format.h>

#include "base/problems.h"
#include "base/text.h"
#include "datasets/group_builder.h"
#include "datasets/task_index.h"
#include "evald/error.h"

namespace evald {
namespace {

// The members of a group in its file, for people.
std::string Members(const Json& value) {
  std::vector<std::string> names;
  const Json members = value.value("task", Json::array());
  if (!members.is_array()) return "";
  for (const Json& member : members) {
    const Json& name =
        member.is_object()
            ? (member.contains("group") ? member.at("group") : member.value("task", Json()))
            : member;
    if (name.is_string()) names.push_back(name.get<std::string>());
  }
  return Join(names, ", ");
}

std::string Summary(const TaskEntry& entry) {
  if (entry.kind == EntryKind::kGroup) return Members(entry.yaml.value);
  if (entry.kind == EntryKind::kTag) {
    return Join(std::vector<std::string>(entry.tagged.begin(), entry.tagged.end()), ", ");
  }
  const Json output = entry.yaml.value.value("output_type", Json("generate_until"));
  const Json shots = entry.yaml.value.value("num_fewshot", Json(0));
  return fmt::format("{}, {}-shot", output.is_string() ? output.get<std::string>() : output.dump(),
                     shots.is_null() ? "0" : shots.dump());
}

}  // namespace

struct TaskRegistry::State {
  State(const std::vector<std::filesystem::path>& task_dirs, const ReadRoots& roots)
      : index(task_dirs, roots) {}
  TaskIndex index;
};

TaskRegistry::TaskRegistry(const std::vector<std::filesystem::path>& task_dirs,
                           const ReadRoots& roots)
    : state_(std::make_unique<State>(task_dirs, roots)) {}
TaskRegistry::~TaskRegistry() = default;

std::vector<TaskListing> TaskRegistry::List() const {
  static const char* const kKinds[] = {"task", "group", "tag"};
  std::vector<TaskListing> listings;
  for (const auto& [name, entry] : state_->index.entries()) {
    std::string source = SourceOf(entry);
    if (entry.kind == EntryKind::kTag && !entry.tagged.empty()) {
      const auto first = state_->index.entries().find(*entry.tagged.begin());
      if (first != state_->index.entries().end()) source = SourceOf(first->second);
    }
    listings.push_back({name, kKinds[static_cast<int>(entry.kind)], source, Summary(entry)});
  }
  return listings;
}

std::vector<TaskProblem> TaskRegistry::Problems() const {
  std::vector<TaskProblem> problems;
  for (const BadTaskFile& file : state_->index.bad_files())
    problems.push_back({file.path, file.problem});
  return problems;
}

ResolvedTasks TaskRegistry::Resolve(const std::vector<TaskRequest>& requests) const {
  GroupBuilder builder(state_->index);
  ProblemList problems;
  for (const TaskRequest& request : requests) problems.Try([&] { builder.Add(request); });
  problems.ThrowIfAny();
  return builder.Take();
}

}  // namespace evald
