#pragma once

#include <memory>
#include <string>
#include <vector>

#include "orchestrator/schedule/open_work.h"

namespace evald {

/// Which of the five decouplings (docs/scheduling.md) an executor has.
struct Decouplings {
  bool load_once = true;        ///< a host reads the checkpoint once; its devices pull from memory
  bool score_elsewhere = true;  ///< a device is free once its generations are in a file
  bool use_priors = true;       ///< the order and size of trials follow what is known of their cost
  bool prepare_once = true;     ///< prompts are kept for later checkpoints
  bool stay_warm = true;        ///< an engine outlives its trial, and the checkpoint
};

/// A part of a trial: so many open documents of a task, its first ones.
struct Cut {
  size_t task = 0;
  int64_t documents = 0;
};

/// Decides which documents a device computes next. The same code runs in the daemon, in the tests
/// and in the simulator: it knows no clock and no I/O, and decides from the open work alone, so
/// that equal calls give equal answers.
class Policy {
 public:
  virtual ~Policy() = default;
  /// As the command line and reports call it.
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;
  /// What an executor of this policy is built like.
  virtual Decouplings decouplings() const { return {}; }
  /// The next trial of `device` (from 0, below work.devices(): when one is lost, the others are
  /// numbered anew): at least one document, no more of a task than are open, each task at most
  /// once. Empty when the device gets nothing for now. One object is asked about one OpenWork, in
  /// the course of its life.
  virtual std::vector<Cut> Next(const OpenWork& work, int device) = 0;
  /// Whether what a straggler still has to do is given to idle devices as well.
  virtual bool doubles_stragglers() const { return false; }
};

/// What leasing costs, and how much of it is accepted: they bound trials from below. And the bound
/// from above, so that neither scoring is kept waiting for its first file, nor what has become
/// urgent, such as long documents of a lost worker, for a device that asks.
struct LeaseCosts {
  double lease_s = 0.005;        ///< of a device, for opening a trial and committing its files
  double overhead_share = 0.01;  ///< of a trial, at most
  double trial_max_s = 15;  ///< device seconds of a trial's documents, unless it is a single one
};

/// Names of all policies, baselines first.
const std::vector<std::string>& PolicyNames();
/// Throws Error(kUsage) for a name that is not among them.
std::unique_ptr<Policy> MakePolicy(const std::string& name, const LeaseCosts& costs = {});

// policies/, one file each
std::unique_ptr<Policy> MakeCoupledPolicy();
std::unique_ptr<Policy> MakeCoupledStagedPolicy();
std::unique_ptr<Policy> MakeFifoPolicy();
std::unique_ptr<Policy> MakeRoundRobinPolicy();
std::unique_ptr<Policy> MakeSizeSplitPolicy();
std::unique_ptr<Policy> MakeElasticPolicy(const LeaseCosts& costs);

}  // namespace evald
