#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/schedule/estimate.h"

namespace evald {

/// The place at which a cost was measured or is to be estimated. Costs are compared within one such
/// place.
struct CostPlace {
  /// The kind of device, with the engine's name: "native, AMD EPYC 9R14, 2 threads".
  std::string device;
  std::string model;       ///< a hash of config.json: all checkpoints of a training run share it
  double model_bytes = 0;  ///< bytes of the weights; 0 if they are not ours
  bool operator==(const CostPlace&) const = default;
};

/// One run's measurements of one task at one place. Sums over `documents`, unless a field says
/// otherwise.
struct TaskCost {
  std::string task;      ///< its name
  std::string task_key;  ///< hash of the definition and data: what was prepared
  CostPlace place;
  bool generates = false;
  double ended = 0;  ///< seconds since 1970
  double prepare_s = 0;
  int64_t documents = 0;
  double tokens_in = 0;
  double tokens_out = 0;
  double device_s = 0;
  double device_deviation_s = 0;  ///< standard deviation, between slices, of a document's mean
  double longest_s = 0;           ///< the longest request, in its place on the device
  int64_t scored = 0;             ///< documents that score_s was measured on
  double score_s = 0;             ///< seconds of a slot of the metric pool
  double score_deviation_s = 0;   ///< as above, between metric jobs
};

/// Facts about a task that are known before it runs.
struct TaskFacts {
  std::string name;
  std::string key;
  bool generates = false;
  bool slow_scoring = false;  ///< its metric runs programs
  int64_t documents = 0;
  double tokens_in = 0;  ///< tokens of a document's prompts
  /// Shared by all its prompts and computed once a trial; 0: the engine keeps no prefix
  double prefix_tokens = 0;
  /// Mean max_gen_toks of requests; log-likelihoods: tokens of continuations
  double tokens_out_most = 0;
  /// The longest that a document may take on the device, as the task says; 0: it does not say
  double declared_s = 0;
};

/// An estimate, and how far it may be trusted.
struct Prior {
  TaskEstimate estimate;
  double factor = 1;  ///< the truth is expected within this factor, up or down
  double weight = 1;  ///< imagined documents that it stands for when it is corrected
  std::string basis;  ///< for people: "2 runs here"
};

/// The expected cost of `facts` at `place`, whose devices hold `places` requests at once. Taken
/// from the first of these that is known:
///  1. this task at this place, else one of its name with other data (another limit, say): the
///     newest run counts half, the one before a quarter, and so on;
///  2. the same on this kind of device with another model: by the ratio of the weights' bytes;
///  3. the time that the task itself declares;
///  4. other tasks on this kind of device: seconds per token in and out, fitted to them (least
///     squares of relative errors), by the size of the model; tokens out as this task had them
///     elsewhere, else 30 % of the limit;
///  5. nothing: 2 floating-point operations per parameter and token at 1e12 a second.
/// A shared prefix costs its tokens at the rate of tokens in, as in 4 or 5, wherever the rest comes
/// from. The cost of scoring comes from this task anywhere, else from a guess. A pure function.
Prior EstimateTask(const TaskFacts& facts, const CostPlace& place, int places,
                   const std::vector<TaskCost>& known);

}  // namespace evald
