#include "orchestrator/config/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/jsonl.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "evald/error.h"
#include "orchestrator/config/sections.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr double kValueMax = 1e12;
constexpr size_t kGatesMax = 10000;

struct KindName {
  GateKind kind;
  const char* key;
  double low, high;
};
constexpr KindName kKinds[] = {{GateKind::kMin, "min", -kValueMax, kValueMax},
                               {GateKind::kMax, "max", -kValueMax, kValueMax},
                               {GateKind::kMaxDrop, "max_drop", 0, kValueMax},
                               {GateKind::kMaxRelativeDrop, "max_relative_drop", 0, 1}};

const char* KeyOf(GateKind kind) {
  for (const KindName& entry : kKinds) {
    if (entry.kind == kind) return entry.key;
  }
  return "";
}

void Require(const YamlSection& section, const std::string& key, const std::string& value,
             const std::string& expected) {
  if (value.empty()) section.RefuseAbsent(key, "absent, expected " + expected);
}

std::string OneOf(YamlSection& section, const std::string& key,
                  const std::vector<std::string>& allowed) {
  const std::string value = section.String(key).value_or("");
  if (!value.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
    section.Refuse(key, fmt::format("found '{}', expected one of {}{}", value, Join(allowed, ", "),
                                    Suggestion(value, allowed)));
  }
  return value;
}

// Returns the key of the bound, or "" if there is none.
std::string ReadBound(YamlSection& section, Gate* gate) {
  std::string first;
  for (const KindName& entry : kKinds) {
    const auto bound = section.Number(entry.key, entry.low, entry.high);
    if (!bound) continue;
    if (!first.empty())
      section.Refuse(entry.key, fmt::format("cannot be given together with '{}'", first));
    first = entry.key;
    gate->kind = entry.kind;
    gate->bound = *bound;
  }
  return first;
}

Tier ReadTier(YamlSection& section) {
  const std::string tier = OneOf(section, "tier", {"critical", "supporting", "advisory"});
  return tier == "supporting" ? Tier::kSupporting
         : tier == "advisory" ? Tier::kAdvisory
                              : Tier::kCritical;
}

// A share of truncated answers is counted, so it has no filter, no interval and no direction.
void CheckTruncated(const YamlSection& section, const Gate& gate) {
  const std::string name = kTruncatedAnswers;
  if (gate.kind != GateKind::kMax || gate.bound < 0 || gate.bound > 1) {
    section.Refuse("metric", fmt::format("'{}' takes max, a share from 0 to 1", name));
  }
  if (!gate.filter.empty())
    section.Refuse("filter", fmt::format("'{}' is the same for every filter", name));
  if (gate.confident)
    section.Refuse("confident", fmt::format("'{}' is counted, not estimated", name));
}

// `truncated: {max: 0.02}`, the gate on every task that generates text.
Gate ReadTruncatedGate(YamlSection section) {
  Gate gate;
  gate.where = section.Where();
  gate.task = kEveryTask;
  gate.metric = kTruncatedAnswers;
  gate.kind = GateKind::kMax;
  const auto max = section.Number("max", 0, 1);
  gate.tier = ReadTier(section);
  gate.name = section.String("name").value_or("");
  section.Finish();
  if (!max) section.RefuseAbsent("max", "absent, expected a share from 0 to 1 such as 0.02");
  gate.bound = *max;
  for (const char* key : {"task", "metric"}) gate.places[key] = section.Place("max");
  gate.places["bound"] = section.Place("max");
  if (gate.name.empty()) gate.name = fmt::format("every task {}: {}", gate.metric, gate.Rule());
  return gate;
}

Gate ReadGate(YamlSection section) {
  Gate gate;
  gate.where = section.Where();
  gate.task = section.String("task").value_or("");
  gate.metric = section.String("metric").value_or("");
  gate.filter = section.String("filter").value_or("");
  const std::string bound = ReadBound(section, &gate);
  const auto confident = section.Boolean("confident");
  gate.confident = confident.value_or(false);
  const std::string direction = OneOf(section, "direction", {"higher", "lower"});
  if (!direction.empty()) gate.higher_is_better = direction == "higher";
  gate.tier = ReadTier(section);
  gate.resolution = section.Number("resolution", 1e-9, kValueMax);
  gate.name = section.String("name").value_or("");
  section.Finish();  // a misspelt key is reported before the key that is absent because of it
  Require(section, "task", gate.task, "the name of a task or group");
  Require(section, "metric", gate.metric, "a metric's name such as acc");
  if (bound.empty())
    section.RefuseAbsent("min",
                         "absent; a gate needs one of min, max, max_drop, max_relative_drop");
  for (const char* key : {"task", "metric", "filter"}) gate.places[key] = section.Place(key);
  gate.places["bound"] = section.Place(bound);
  if (gate.NeedsBaseline() && confident) {
    section.Refuse("confident", "belongs to min and max; a drop is always decided by an interval");
  }
  if (!gate.NeedsBaseline() && !direction.empty()) {
    section.Refuse("direction",
                   "belongs to max_drop and max_relative_drop; min and max say it themselves");
  }
  if (gate.resolution && !gate.NeedsBaseline() && !gate.confident) {
    section.Refuse("resolution", "has no meaning for a value without 'confident: true'");
  }
  if (gate.IsOfTruncated()) CheckTruncated(section, gate);
  if (gate.name.empty()) {
    gate.name = fmt::format("{} {}{}: {}", gate.task, gate.metric,
                            gate.filter.empty() ? "" : " (" + gate.filter + ")", gate.Rule());
  }
  return gate;
}

std::optional<double> OptionalNumber(const Json& json, const char* key, const std::string& where) {
  return json.contains(key) ? std::optional(Field<double>(json, key, where)) : std::nullopt;
}

Gate GateFromJson(const Json& json, const std::string& where) {
  Gate gate;
  gate.name = Field<std::string>(json, "name", where);
  gate.task = Field<std::string>(json, "task", where);
  gate.metric = Field<std::string>(json, "metric", where);
  gate.filter = FieldOr<std::string>(json, "filter", "", where);
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const KindName& k) { return json.contains(k.key); });
  if (kind == std::end(kKinds)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the gate '{}' has no bound, expected one of min, max, max_drop, "
                            "max_relative_drop",
                            where, gate.name));
  }
  gate.kind = kind->kind;
  gate.bound = Field<double>(json, kind->key, where);
  gate.confident = FieldOr<bool>(json, "confident", false, where);
  const auto direction = FieldOr<std::string>(json, "direction", "", where);
  if (!direction.empty()) gate.higher_is_better = direction == "higher";
  const auto tier = Field<std::string>(json, "tier", where);
  gate.tier = tier == "supporting" ? Tier::kSupporting
              : tier == "advisory" ? Tier::kAdvisory
                                   : Tier::kCritical;
  gate.resolution = OptionalNumber(json, "resolution", where);
  gate.where = FieldOr<std::string>(json, "where", "", where);
  const Json places = FieldOr<Json>(json, "places", Json::object(), where);
  for (const auto& [key, place] : places.items())
    gate.places[key] = Field<std::string>(places, key, where);
  return gate;
}

}  // namespace

std::string ToString(Tier tier) {
  return tier == Tier::kCritical     ? "critical"
         : tier == Tier::kSupporting ? "supporting"
                                     : "advisory";
}

std::string Gate::Rule() const {
  return fmt::format("{} {}{}", KeyOf(kind), bound, confident ? " (confident)" : "");
}

const std::string& Gate::Place(const std::string& key) const {
  const auto found = places.find(key);
  return found == places.end() ? where : found->second;
}

bool GatePolicy::NeedsBaseline() const {
  return std::any_of(gates.begin(), gates.end(),
                     [](const Gate& gate) { return gate.NeedsBaseline(); });
}

GatePolicy ReadGates(YamlSection section, const fs::path& folder) {
  GatePolicy policy;
  if (const auto baseline = section.String("baseline")) {
    policy.baseline = ResolveBelow(folder, *baseline);
    policy.baseline_place = section.Place("baseline");
  }
  policy.alpha = section.Number("alpha", 1e-6, 0.5).value_or(0.05);
  policy.resolution = section.Number("resolution", 1e-9, kValueMax);
  policy.other_versions = section.Boolean("other_versions").value_or(false);
  const auto truncated = section.Section("truncated");
  const std::vector<YamlSection> rules = section.Sections("rules");
  if (rules.empty() && !truncated && !section.IsRefused("truncated"))
    section.RefuseAbsent("rules", "absent or empty, expected a list of gates");
  if (rules.size() > kGatesMax)
    section.Refuse("rules", fmt::format("has more than {} gates", kGatesMax));
  std::set<std::string> names;
  const auto add = [&](Gate gate, const YamlSection& from) {
    if (!names.insert(gate.name).second)
      from.Refuse("name", fmt::format("a second gate is named '{}'", gate.name));
    policy.gates.push_back(std::move(gate));
  };
  if (truncated) section.Try([&] { add(ReadTruncatedGate(*truncated), *truncated); });
  for (const YamlSection& rule : rules) section.Try([&] { add(ReadGate(rule), rule); });
  section.Finish();
  return policy;
}

GatePolicy ReadGatesFile(const fs::path& file) {
  return ReadGates(YamlSection::Load(file, {}), fs::absolute(file).parent_path());
}

Json ToJson(const GatePolicy& policy) {
  Json rules = Json::array();
  for (const Gate& gate : policy.gates) {
    Json rule = {{"name", gate.name}, {"task", gate.task}, {"metric", gate.metric}};
    if (!gate.filter.empty()) rule["filter"] = gate.filter;
    rule[KeyOf(gate.kind)] = gate.bound;
    if (gate.confident) rule["confident"] = true;
    if (gate.higher_is_better) rule["direction"] = *gate.higher_is_better ? "higher" : "lower";
    rule["tier"] = ToString(gate.tier);
    if (gate.resolution) rule["resolution"] = *gate.resolution;
    rules.push_back(std::move(rule));
  }
  Json json = Json::object();
  if (!policy.baseline.empty()) json["baseline"] = policy.baseline.string();
  json["alpha"] = policy.alpha;
  if (policy.resolution) json["resolution"] = *policy.resolution;
  if (policy.other_versions) json["other_versions"] = true;
  json["rules"] = std::move(rules);
  return json;
}

Json ToJsonWithPlaces(const GatePolicy& policy) {
  Json json = ToJson(policy);
  json["baseline_place"] = policy.baseline_place;
  for (size_t i = 0; i < policy.gates.size(); ++i) {
    json["rules"][i]["where"] = policy.gates[i].where;
    json["rules"][i]["places"] = policy.gates[i].places;
  }
  return json;
}

GatePolicy GatePolicyFromJson(const Json& json, const std::string& where) {
  GatePolicy policy;
  policy.baseline = FieldOr<std::string>(json, "baseline", "", where);
  policy.baseline_place =
      FieldOr<std::string>(json, "baseline_place", policy.baseline_place, where);
  policy.alpha = Field<double>(json, "alpha", where);
  policy.resolution = OptionalNumber(json, "resolution", where);
  policy.other_versions = FieldOr<bool>(json, "other_versions", false, where);
  for (const Json& rule : Field<std::vector<Json>>(json, "rules", where))
    policy.gates.push_back(GateFromJson(rule, where));
  return policy;
}

}  // namespace evald
