#include "orchestrator/verdict/truncated.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr const char* kFacts = "evald.truncated_answers";

// The counts by task. Throws if the results do not have them, such as those of another program.
Json FactsOf(const Gate& gate, const ResultSet& set) {
  const Json& results = set.results();
  const Json facts = FieldOr<Json>(results, "evald", Json::object(), "results");
  if (facts.is_object() && facts.contains("truncated_answers") &&
      facts["truncated_answers"].is_object()) {
    return facts["truncated_answers"];
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: the results do not say how many answers are truncated",
                          gate.Place("metric")),
              "evald's own results have them");
}

void Add(const Json& fact, TruncatedCount* count) {
  count->truncated += Field<int64_t>(fact, "truncated", kFacts);
  count->answers += Field<int64_t>(fact, "answers", kFacts);
}

// Adds a task's answers to the count. False if the task generates none.
bool AddOf(const Json& facts, const std::string& task, TruncatedCount* count) {
  const auto found = facts.find(task);
  if (found != facts.end()) Add(*found, count);
  return found != facts.end();
}

[[noreturn]] void RefuseNone(const Gate& gate, const std::string& what) {
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: {}, so that no answer can be truncated", gate.Place("task"), what),
              "log-likelihoods are never truncated; leave the gate out");
}

}  // namespace

std::string TruncatedCount::Text() const {
  return fmt::format("{}: {} of {} answers ({:.1f} %)", task, truncated, answers, 100 * Share());
}

std::vector<TruncatedCount> TruncatedCounts(const Gate& gate, const GatePolicy& policy,
                                            const ResultSet& set) {
  const Json facts = FactsOf(gate, set);
  if (gate.task != kEveryTask) {
    TruncatedCount count{gate.task};
    bool any = false;
    for (const std::string& leaf : set.Leaves(gate.task)) any = AddOf(facts, leaf, &count) || any;
    if (!any) RefuseNone(gate, fmt::format("'{}' generates no text", gate.task));
    return {count};
  }
  std::set<std::string> others;
  for (const Gate& other : policy.gates) {
    if (!other.IsOfTruncated() || other.task == kEveryTask) continue;
    for (const std::string& leaf : set.Leaves(other.task)) others.insert(leaf);
  }
  if (facts.empty()) RefuseNone(gate, "no task generates text");
  std::vector<TruncatedCount> counts;
  for (const auto& [task, fact] : facts.items()) {
    TruncatedCount count{task};
    if (others.count(task) != 0) continue;
    Add(fact, &count);
    counts.push_back(count);
  }
  return counts;
}

}  // namespace evald
