#include "orchestrator/simulate/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "evald/error.h"

namespace evald {

// presets/, put into the program by orchestrator/CMakeLists.txt
extern const std::string_view preset_acme_7b_63;
extern const std::string_view preset_acme;
extern const std::string_view preset_acme_modern;

const std::vector<SimPreset>& SimPresets() {
  static const std::vector<SimPreset> presets = {
      {"acme-7b-63", "one checkpoint of 7 billion parameters on 63 datasets", "acme", 1, 1, 1800},
      {"stream", "the same, a checkpoint every 30 minutes", "acme", 4, 6, 1800},
      {"cluster-day", "a day of evaluation jobs of published lengths", "acme", 4, 1, 1800, true},
  };
  return presets;
}

const SimPreset& FindPreset(const std::string& name) {
  std::vector<std::string> names;
  for (const SimPreset& preset : SimPresets()) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("no preset is called '{}'{}", name, Suggestion(name, names)),
              fmt::format("one of {}, or --workload FILE", Join(names, ", ")));
}

std::string_view PresetWorkloadText() { return preset_acme_7b_63; }

const std::vector<std::string>& SimClusterNames() {
  static const std::vector<std::string> names = {"acme", "acme-modern"};
  return names;
}

std::string_view ClusterText(const std::string& name) {
  return name == "acme" ? preset_acme : preset_acme_modern;
}

SimCluster FindCluster(const std::string& name_or_file) {
  const std::vector<std::string>& names = SimClusterNames();
  if (std::find(names.begin(), names.end(), name_or_file) != names.end()) {
    return ParseCluster(std::string(ClusterText(name_or_file)), name_or_file + ".yaml");
  }
  if (!std::filesystem::exists(name_or_file)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("no cluster and no file is called '{}'{}", name_or_file,
                            Suggestion(name_or_file, names)),
                fmt::format("one of {}, or a file like that of 'evald simulate --print cluster'",
                            Join(names, ", ")));
  }
  return ReadCluster(name_or_file);
}

std::optional<double> PublishedSpeedup(const Scenario& scenario, const std::string& policy) {
  const bool theirs = policy == "round-robin" && scenario.workload.name == "acme-7b-63" &&
                      scenario.cluster.name == "acme";
  if (!theirs || scenario.has_faults()) return std::nullopt;
  if (scenario.cluster.nodes == 1) return 1.3;
  if (scenario.cluster.nodes == 4) return 1.8;
  return std::nullopt;
}

}  // namespace evald
