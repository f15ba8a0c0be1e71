#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

class YamlSection;

/// How much a gate counts. Only critical gates set the exit status.
enum class Tier { kCritical, kSupporting, kAdvisory };
std::string ToString(Tier tier);

enum class GateKind {
  kMin,              ///< the value is at least `bound`
  kMax,              ///< the value is at most `bound`
  kMaxDrop,          ///< at most `bound` worse than the baseline, in the metric's units
  kMaxRelativeDrop,  ///< at most `bound` times the baseline's value worse
};

/// One rule that a run's results must meet.
struct Gate {
  std::string name;  ///< unique in its policy
  std::string task;  ///< a task or group
  std::string metric;
  std::string filter;  ///< empty: the only one that has the metric
  GateKind kind = GateKind::kMin;
  double bound = 0;
  bool confident = false;                ///< kMin and kMax: decided by an interval too
  std::optional<bool> higher_is_better;  ///< where the results do not say, or say otherwise
  Tier tier = Tier::kCritical;
  std::optional<double> resolution;  ///< in the metric's units; else the policy's
  std::string where;                 ///< file:line
  std::map<std::string, std::string>
      places;  ///< of its keys, where they are known: "file:line: key 'rules[0].metric'"

  /// Where a key stands, for the beginning of an error; `where` if more is not known.
  const std::string& Place(const std::string& key) const;

  bool NeedsBaseline() const {
    return kind == GateKind::kMaxDrop || kind == GateKind::kMaxRelativeDrop;
  }
  /// "max_drop 0.01", "min 0.7".
  std::string Rule() const;
};

/// All gates of an eval.yaml or a policy file. docs/gates.md describes each key.
struct GatePolicy {
  std::filesystem::path baseline;  ///< a run's folder or a results file; empty: none
  std::string baseline_place =
      "baseline";  ///< what named it: "file:line: key 'baseline'", "--baseline"
  double alpha = 0.05;
  std::optional<double> resolution;  ///< default 0.02, see docs/gates.md
  std::vector<Gate> gates;

  bool NeedsBaseline() const;
};

/// Reads the mapping under `gates:`; `folder` is what a relative baseline is relative to. Throws
/// Error(kUsage) "file:line: ...".
GatePolicy ReadGates(YamlSection section, const std::filesystem::path& folder);

/// Reads a policy file: the same keys at the top.
GatePolicy ReadGatesFile(const std::filesystem::path& file);

/// The keys of eval.yaml, each gate with its name.
Json ToJson(const GatePolicy& policy);
/// The same with what ToJson leaves out: where the gates and the baseline were read.
Json ToJsonWithPlaces(const GatePolicy& policy);
/// Either document. Throws Error(kInput)
/// "<where>: ...".
GatePolicy GatePolicyFromJson(const Json& json, const std::string& where);

}  // namespace evald
