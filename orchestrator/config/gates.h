#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

class YamlSection;

/// The weight of a gate. Only critical gates set the exit status.
enum class Tier { kCritical, kSupporting, kAdvisory };
std::string ToString(Tier tier);

enum class GateKind {
  kMin,              ///< the value is at least `bound`
  kMax,              ///< the value is at most `bound`
  kMaxDrop,          ///< at most `bound` worse than the baseline, in the metric's units
  kMaxRelativeDrop,  ///< worse by at most `bound` times the baseline's value
};

/// The name under which gates know the share of a task's answers that are truncated.
inline constexpr const char* kTruncatedAnswers = "truncated";
/// The task of a gate on every task that generates text and has no such gate of its own. No task
/// has this name.
inline constexpr const char* kEveryTask = "*";

/// One rule that a run's results must meet.
struct Gate {
  std::string name;  ///< unique in its policy
  std::string task;  ///< a task or group
  std::string metric;
  std::string filter;  ///< empty: the only filter that has the metric
  GateKind kind = GateKind::kMin;
  double bound = 0;
  bool confident = false;                ///< kMin and kMax: also decided by an interval
  std::optional<bool> higher_is_better;  ///< if the results do not say, or say otherwise
  Tier tier = Tier::kCritical;
  std::optional<double> resolution;           ///< in the metric's units; default: the policy's
  std::string where;                          ///< file:line
  std::map<std::string, std::string> places;  ///< of known keys: "file:line: key 'rules[0].metric'"

  /// The place of a key, with which an error begins; `where` if the place is unknown.
  const std::string& Place(const std::string& key) const;

  /// Whether the gate bounds the share of truncated answers, which is no metric of a task.
  bool IsOfTruncated() const { return metric == kTruncatedAnswers; }
  bool NeedsBaseline() const {
    return kind == GateKind::kMaxDrop || kind == GateKind::kMaxRelativeDrop;
  }
  /// "max_drop 0.01", "min 0.7".
  std::string Rule() const;
};

/// All gates of an eval.yaml or a policy file. docs/gates.md describes each key.
struct GatePolicy {
  std::filesystem::path baseline;  ///< a run's folder or a results file; empty: none
  /// Its source: "file:line: key 'baseline'", "--baseline"
  std::string baseline_place = "baseline";
  double alpha = 0.05;
  std::optional<double> resolution;  ///< default 0.02, see docs/gates.md
  bool other_versions = false;       ///< tasks are also compared if their versions differ
  std::vector<Gate> gates;

  bool NeedsBaseline() const;
};

/// Reads the mapping under `gates:`. A relative baseline starts from `folder`. Throws Error(kUsage)
/// "file:line: ...".
GatePolicy ReadGates(YamlSection section, const std::filesystem::path& folder);

/// Reads a policy file, which has the same keys at the top.
GatePolicy ReadGatesFile(const std::filesystem::path& file);

/// The policy with the keys of eval.yaml, and a name for each gate.
Json ToJson(const GatePolicy& policy);
/// The same, and also the places where gates and baseline were read.
Json ToJsonWithPlaces(const GatePolicy& policy);
/// Reads either document. Throws Error(kInput) "<where>: ...".
GatePolicy GatePolicyFromJson(const Json& json, const std::string& where);

}  // namespace evald
