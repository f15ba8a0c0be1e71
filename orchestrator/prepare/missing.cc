#include "orchestrator/prepare/missing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/problems.h"
#include "base/text.h"

namespace evald {
namespace {

constexpr size_t kCausesMax = 40;  // in one message

// "57 tasks, such as mmlu_anatomy", or the task's name.
std::string Named(const std::vector<std::string>& tasks) {
  if (tasks.size() == 1) return "task '" + tasks.front() + "'";
  return fmt::format("{} tasks, such as '{}'", tasks.size(), tasks.front());
}

}  // namespace

void Missing::AddCause(const std::string& task, std::string key, std::string text,
                       const Error& error) {
  const auto known = std::find_if(causes_.begin(), causes_.end(),
                                  [&](const Cause& cause) { return cause.key == key; });
  if (known != causes_.end()) {
    if (known->tasks.back() != task) known->tasks.push_back(task);
    return;
  }
  causes_.push_back({std::move(key), std::move(text), error, {task}});
}

void Missing::Add(const std::string& task, const Error& error) {
  AddCause(task, error.message(), error.message(), error);
}

void Missing::Add(const std::string& task, const SplitFound& split) {
  if (!split.failure) return;
  if (split.own) return Add(task, *split.failure);
  const std::string what =
      fmt::format("no file holds the split '{}' of the dataset '{}'", split.split, split.dataset);
  AddCause(task, what, what, *split.failure);
}

void Missing::ThrowIfAny(size_t tasks) const {
  if (causes_.empty()) return;
  const bool each_alone = std::all_of(causes_.begin(), causes_.end(),
                                      [](const Cause& cause) { return cause.tasks.size() == 1; });
  if (each_alone && causes_.size() <= kCausesMax) {
    ProblemList problems;
    for (const Cause& cause : causes_) problems.Add(cause.error);
    problems.ThrowIfAny();
  }
  std::set<std::string> stopped;
  std::vector<std::string> parts;
  for (const Cause& cause : causes_) {
    stopped.insert(cause.tasks.begin(), cause.tasks.end());
    if (parts.size() < kCausesMax)
      parts.push_back(fmt::format("{} ({})", cause.text, Named(cause.tasks)));
  }
  if (causes_.size() > kCausesMax)
    parts.push_back(fmt::format("and {} more causes", causes_.size() - kCausesMax));
  const std::string& first = causes_.front().error.remedy();
  throw Error(ErrorKind::kInput,
              fmt::format("{} of the run's {} tasks cannot be prepared: {}", stopped.size(), tasks,
                          Join(parts, "; ")),
              (first.empty() ? "" : "for the first: " + first + "; ") +
                  "'evald tasks --needs' shows what each task needs");
}

}  // namespace evald
