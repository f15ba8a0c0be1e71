#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orchestrator/launch/launcher.h"

namespace evald {

/// The section `slurm` of a launcher in serve.yaml.
struct SlurmSettings {
  std::string prefix;     ///< of the names of this service's jobs
  std::string partition;  ///< "": Slurm's default
  int gpus_per_node = 0;
  int cpus_per_node = 0;           ///< 0: as many as the site gives
  double time_s = 0;               ///< the time limit of a job; 0: the partition's default
  double warning_s = 120;          ///< before that limit, the agent is told to finish
  std::vector<std::string> more;   ///< further arguments of sbatch, "--account=llm"
  std::filesystem::path evald;     ///< this program, on the nodes
  std::vector<std::string> agent;  ///< further arguments of `evald agent`
  std::filesystem::path logs;      ///< a folder that is there on each node, for the agents' logs
};

/// Jobs of Slurm, by sbatch, squeue and scancel. Slurm's own programs are found in PATH.
class SlurmLauncher : public Launcher {
 public:
  explicit SlurmLauncher(SlurmSettings settings) : settings_(std::move(settings)) {}

  SubmitAnswer Submit(const NodeJob& job, const std::string& join,
                      const std::vector<std::string>& excluded) override;
  std::vector<ListedJob> List() override;
  void Stop(const NodeJob& job) override;
  void Exclude(const NodeJob& job, const std::vector<std::string>& excluded) override;
  std::string LogEnd(const NodeJob& job) override;
  std::string HowToStop(const std::vector<std::string>& names) const override;

  /// The arguments with which sbatch submits the job. The script comes by standard input.
  std::vector<std::string> SubmitArguments(const NodeJob& job,
                                           const std::vector<std::string>& excluded) const;
  std::string Script() const;

 private:
  ProgramCall StopCall(const NodeJob& job) const override;
  std::filesystem::path LogOf(const NodeJob& job) const;

  SlurmSettings settings_;
};

}  // namespace evald
