#pragma once

#include <memory>
#include <string>
#include <vector>

#include "orchestrator/schedule/open_work.h"

namespace evald {

/// The decouplings, of five (docs/scheduling.md), that an executor has.
struct Decouplings {
  bool load_once = true;        ///< a host reads the checkpoint once; its devices pull from memory
  bool score_elsewhere = true;  ///< a device is free once its generations are in a file
  bool use_priors = true;       ///< the order and size of trials follow what is known of their cost
  bool prepare_once = true;     ///< prompts are kept for later checkpoints
  bool stay_warm = true;        ///< an engine outlives its trial, and the checkpoint
};

/// A part of a trial: the first `documents` open documents of a task.
struct Cut {
  size_t task = 0;
  int64_t documents = 0;
};

/// Decides which documents a device computes next. Daemon, tests and simulator run the same code. A
/// policy has no clock and no I/O and decides from the open work alone, so equal calls give equal
/// answers.
class Policy {
 public:
  virtual ~Policy() = default;
  /// The name in the command line and in reports.
  virtual const char* name() const = 0;
  virtual const char* summary() const = 0;
  /// The decouplings that an executor of this policy has.
  virtual Decouplings decouplings() const { return {}; }
  /// The next trial of `device` (from 0, below work.devices(); when a device is lost, the others
  /// are renumbered). It has at least one document, no more of a task than are open, and each task
  /// at most once. Empty if the device gets nothing for now. One policy object serves one OpenWork
  /// for its whole life.
  virtual std::vector<Cut> Next(const OpenWork& work, int device) = 0;
  /// Whether idle devices also compute what a straggler still has to do.
  virtual bool backs_up_stragglers() const { return false; }
};

/// The cost of leasing and the share of it that is accepted, which bound trials from below; and the
/// bound from above. The upper bound keeps scoring from waiting for its first file. It also keeps
/// urgent work, such as long documents of a lost worker, from waiting for a device that asks.
struct LeaseCosts {
  /// Seconds of a device for opening a trial and committing its files
  double lease_s = 0.005;
  double overhead_share = 0.01;  ///< the largest accepted share of a trial
  /// device seconds of a trial's documents, unless it is a single one
  double trial_max_s = 15;
};

/// Names of all policies, baselines first.
const std::vector<std::string>& PolicyNames();
/// Throws Error(kUsage) for a name that is not in PolicyNames().
std::unique_ptr<Policy> MakePolicy(const std::string& name, const LeaseCosts& costs = {});

// policies/, one file each
std::unique_ptr<Policy> MakeCoupledPolicy();
std::unique_ptr<Policy> MakeCoupledStagedPolicy();
std::unique_ptr<Policy> MakeFifoPolicy();
std::unique_ptr<Policy> MakeRoundRobinPolicy();
std::unique_ptr<Policy> MakeSizeSplitPolicy();
std::unique_ptr<Policy> MakeElasticPolicy(const LeaseCosts& costs);

}  // namespace evald
