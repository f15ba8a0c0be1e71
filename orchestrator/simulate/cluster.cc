#include "orchestrator/simulate/cluster.h"

#include <fmt/format.h>

#include "evald/error.h"
#include "orchestrator/config/yaml_section.h"

namespace evald {
namespace {

constexpr const char* kSchema = "evald-cluster/1";

void NumberAt(YamlSection* section, const std::string& key, double low, double high,
              double* value) {
  const auto found = section->Number(key, low, high);
  if (!found)
    section->RefuseAbsent(key, fmt::format("absent, expected a number from {} to {}", low, high));
  *value = *found;
}

void CountAt(YamlSection* section, const std::string& key, int64_t high, int* value) {
  const auto found = section->Integer(key, 1, high);
  if (!found)
    section->RefuseAbsent(key, fmt::format("absent, expected an integer from 1 to {}", high));
  *value = static_cast<int>(*found);
}

void ReadExecutor(YamlSection section, SimCluster* cluster) {
  CountAt(&section, "places", 1'000'000, &cluster->places);
  cluster->stop_strings = section.Boolean("stop_strings").value_or(true);
  cluster->share_prefixes = section.Boolean("share_prefixes").value_or(true);
  cluster->single_forward = section.Boolean("single_forward").value_or(true);
  NumberAt(&section, "start_s", 0, 1e6, &cluster->start_s);
  NumberAt(&section, "prepare_s", 0, 1e6, &cluster->prepare_s);
  NumberAt(&section, "lease_s", 0, 1e3, &cluster->lease_s);
  section.Finish();
}

void ReadStaging(std::optional<YamlSection> section, SimCluster* cluster) {
  cluster->node_bytes_per_s = cluster->storage_bytes_per_s;
  if (!section) return;
  const std::string way = section->String("way").value_or("each");
  try {
    cluster->staging = SimStagingOf(way);
  } catch (const Error& error) {
    section->Refuse("way", error.what());
  }
  cluster->node_bytes_per_s =
      section->Number("node_bytes_per_s", 1, 1e15).value_or(cluster->node_bytes_per_s);
  cluster->fan_out = static_cast<int>(section->Integer("fan_out", 1, 1000).value_or(2));
  cluster->hop_s = section->Number("hop_s", 0, 1e6).value_or(0);
  section->Finish();
}

SimCluster Read(YamlSection top) {
  const std::string schema = top.String("schema").value_or("");
  if (schema != kSchema)
    top.Refuse("schema", fmt::format("found '{}', expected {}", schema, kSchema));
  SimCluster cluster;
  cluster.name = top.String("name").value_or("");
  CountAt(&top, "nodes", 100'000, &cluster.nodes);
  CountAt(&top, "devices_per_node", 1024, &cluster.devices_per_node);
  CountAt(&top, "score_slots_per_node", 100'000, &cluster.score_slots_per_node);
  NumberAt(&top, "storage_bytes_per_s", 1, 1e15, &cluster.storage_bytes_per_s);
  ReadStaging(top.Section("staging"), &cluster);
  NumberAt(&top, "pcie_bytes_per_s", 1, 1e15, &cluster.pcie_bytes_per_s);
  NumberAt(&top, "memory_bytes_per_s", 1, 1e16, &cluster.memory_bytes_per_s);
  NumberAt(&top, "flop_per_s", 1, 1e20, &cluster.flop_per_s);
  auto executor = top.Section("executor");
  if (!executor)
    top.RefuseAbsent("executor",
                     "absent, expected {places: ..., start_s: ..., prepare_s: ..., lease_s: ...}");
  ReadExecutor(std::move(*executor), &cluster);
  top.Finish();
  return cluster;
}

}  // namespace

SimStaging SimStagingOf(const std::string& word) {
  for (const SimStaging staging : {SimStaging::kEach, SimStaging::kLink, SimStaging::kTree}) {
    if (word == Name(staging)) return staging;
  }
  throw Error(ErrorKind::kUsage, fmt::format("found '{}', expected each, link or tree", word));
}

const char* Name(SimStaging staging) {
  return staging == SimStaging::kEach ? "each" : staging == SimStaging::kLink ? "link" : "tree";
}

SimCluster ReadCluster(const std::filesystem::path& file) {
  return Read(YamlSection::Load(file, {}));
}

SimCluster ParseCluster(const std::string& text, const std::string& file) {
  return Read(YamlSection::Parse(text, file, {}));
}

}  // namespace evald
