#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// An entry of `launchers` in serve.yaml (docs/slurm.md). Times in seconds.
struct LauncherConfig {
  std::string kind;  ///< "slurm" or "command"
  std::string name;  ///< letters, digits and '_'; its jobs and hosts are named by it
  int nodes_min = 0;
  int nodes_max = 1;
  int pending_max = 8;            ///< jobs that wait in the queue at once
  double node_hours_per_day = 0;  ///< 0: no bound
  double idle_s = 300;            ///< a node without work for so long goes back
  double startup_s = 60;          ///< guess of how long a node takes to come
  double worth_s = 60;            ///< a node is asked for if it would have work for so long
  double agent_s = 120;           ///< from a job's start until its agent is there
  double retry_s = 60;            ///< first pause after a failure, doubled with each further one
  double poll_s = 30;             ///< between two questions to the launcher
  int gpus_per_node = 0;
  std::filesystem::path evald;     ///< the program on the nodes; "": the one that runs here
  std::vector<std::string> agent;  ///< further arguments of `evald agent`
  std::filesystem::path logs;      ///< "": a folder in state_dir

  // Slurm
  std::string partition;  ///< "": Slurm's default
  int cpus_per_node = 0;  ///< 0: what the site gives
  double time_s = 0;      ///< 0: the partition's default
  double warning_s = 120;
  std::vector<std::string> sbatch;  ///< further arguments of sbatch

  // Programs of the user, each with its arguments
  std::vector<std::string> start, stop, list;
  std::vector<std::string> log;  ///< may be empty
};

}  // namespace evald
