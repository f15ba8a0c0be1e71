#pragma once

#include <filesystem>
#include <string>

namespace evald {

/// How a checkpoint gets into the memory of the nodes.
enum class SimStaging {
  kEach,  ///< each node reads it from storage over a link of its own
  kLink,  ///< likewise, but all nodes share one link
  kTree,  ///< the first node reads it; a node that has it, or gets it, passes it on to others
};

/// Throws Error(kUsage) for another word than each, link and tree.
SimStaging SimStagingOf(const std::string& word);
const char* Name(SimStaging staging);

/// The machines that a workload runs on, and the executor on them. Rates are what is reached, not
/// what is printed on the box; docs/simulate.md has the source of each figure of the presets.
struct SimCluster {
  std::string name;
  int nodes = 1;
  int devices_per_node = 8;
  double storage_bytes_per_s = 0;  ///< of one node, shared by all that load on it (kLink: by all)
  SimStaging staging = SimStaging::kEach;
  double node_bytes_per_s = 0;    ///< kTree: of each copy that a node passes on
  int fan_out = 2;                ///< kTree: copies that a node passes on at the same time
  double hop_s = 0;               ///< kTree: how much later the end of a checkpoint is one node on
  double pcie_bytes_per_s = 0;    ///< from host memory, of each device
  double memory_bytes_per_s = 0;  ///< of a device, reached in decoding
  double flop_per_s = 0;          ///< of a device, reached in prefill
  int places = 1;                 ///< requests that a device has under way at once
  bool stop_strings = true;       ///< generation ends at stop strings; else at max_gen_toks
  bool share_prefixes = true;     ///< a prefix is computed once by a trial; else by every request
  bool single_forward = true;     ///< choices of one token are read from one forward
  int score_slots_per_node = 1;
  double start_s = 0;    ///< of an engine, until it can load
  double prepare_s = 0;  ///< of a dataset, until its prompts are ready
  double lease_s = 0;    ///< of a device, at each trial

  int devices() const { return nodes * devices_per_node; }
  int score_slots() const { return nodes * score_slots_per_node; }
};

/// Reads a cluster (docs/simulate.md). Throws Error(kUsage) "file:line: key ...".
SimCluster ReadCluster(const std::filesystem::path& file);
SimCluster ParseCluster(const std::string& text, const std::string& file);

}  // namespace evald
