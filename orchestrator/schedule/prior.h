#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/schedule/estimate.h"

namespace evald {

/// Where a cost was measured, or is to be estimated: costs are compared within one of these.
struct CostPlace {
  std::string device;      ///< its kind, with the engine's name: "native, AMD EPYC 9R14, 2 threads"
  std::string model;       ///< a hash of config.json: all checkpoints of a training run share it
  double model_bytes = 0;  ///< of the weights; 0 where they are not ours
  bool operator==(const CostPlace&) const = default;
};

/// What one run measured of one task at one place. Sums over `documents`, unless it says otherwise.
struct TaskCost {
  std::string task;      ///< its name
  std::string task_key;  ///< of its definition and data: what was prepared
  CostPlace place;
  bool generates = false;
  double ended = 0;  ///< seconds since 1970
  double prepare_s = 0;
  int64_t documents = 0;
  double tokens_in = 0;
  double tokens_out = 0;
  double device_s = 0;
  double device_deviation_s = 0;  ///< standard deviation of a document's mean, between slices
  double longest_s = 0;           ///< the longest request, in its place on the device
  int64_t scored = 0;             ///< documents that score_s is of
  double score_s = 0;             ///< seconds of a slot of the metric pool
  double score_deviation_s = 0;   ///< as above, between metric jobs
};

/// What is known of a task before it runs.
struct TaskFacts {
  std::string name;
  std::string key;
  bool generates = false;
  bool slow_scoring = false;  ///< its metric runs programs
  int64_t documents = 0;
  double tokens_in = 0;  ///< of a document's prompts
  double prefix_tokens =
      0;  ///< that all of its prompts share and an engine computes once for a trial; 0: it does not
  double tokens_out_most =
      0;  ///< max_gen_toks, over its requests; of log-likelihoods the continuations
};

/// An estimate with how far it may be trusted.
struct Prior {
  TaskEstimate estimate;
  double factor = 1;  ///< the truth is expected within this factor of it, either way
  double weight = 1;  ///< documents that it stands for when it is corrected
  std::string basis;  ///< for people: "2 runs here"
};

/// What `facts` is expected to cost at `place`, whose devices hold `places` requests at once. The
/// first that is known:
///  1. this task at this place, else one of its name with other data (another limit, say): the newest run
///     counts half, the one before a quarter, and so on;
///  2. the same on this kind of device with another model: by the ratio of the weights' bytes;
///  3. other tasks on this kind of device: seconds per token in and out, fitted to them (least squares of
///     relative errors), by the size of the model; tokens out as this task had them elsewhere, else 30 % of
///     the limit;
///  4. nothing: 2 floating-point operations per parameter and token at 1e12 a second.
/// A shared prefix costs its tokens at the rate of tokens in, as in 3 or 4, whatever the rest is
/// taken from. Scoring: this task anywhere, else a guess. A pure function.
Prior EstimateTask(const TaskFacts& facts, const CostPlace& place, int places,
                   const std::vector<TaskCost>& known);

}  // namespace evald
