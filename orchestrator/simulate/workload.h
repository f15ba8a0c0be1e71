#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// The model that is evaluated, as far as its speed depends on it.
struct SimModel {
  double params = 0;
  double bytes = 0;               ///< of its weights
  double kv_bytes_per_token = 0;  ///< of one sequence's cache
};

/// A positive quantity that differs from document to document: lognormal, of this mean and this
/// 95th percentile (0: all alike), no larger than `most` (0: unbounded).
struct Spread {
  double mean = 0;
  double p95 = 0;
  double most = 0;
};

/// The requests that each document of a dataset makes.
struct SimDataset {
  std::string name;
  int dataset = 0;         ///< counts datasets; one that mixes kinds of requests is two of these
  bool generates = false;  ///< generate_until; else loglikelihood
  int64_t documents = 0;
  double prompt_tokens = 0;  ///< mean of a whole prompt
  double prefix_tokens = 0;  ///< of these, what is the same for all documents of a group
  int64_t prefix_groups = 0;
  Spread own_tokens;               ///< the rest of the prompt
  double choices = 1;              ///< loglikelihood: continuations of a document
  double continuation_tokens = 1;  ///< loglikelihood: mean of one
  bool single_forward = false;  ///< loglikelihood: one forward gives all choices, in any executor
  Spread generated_tokens;      ///< generate_until: with stop strings
  int64_t max_gen_toks = 0;     ///< generate_until
  double score_s = 0;           ///< CPU seconds, or seconds of waiting for a service, of a document
  bool slow_scoring = false;    ///< runs programs or asks a service
};

struct Workload {
  std::string name;
  SimModel model;
  double context_limit = 0;  ///< tokens
  std::vector<SimDataset> datasets;

  int dataset_count() const { return datasets.empty() ? 0 : datasets.back().dataset + 1; }
};

/// Reads a workload (docs/simulate.md). Throws Error(kUsage) "file:line: key ...".
Workload ReadWorkload(const std::filesystem::path& file);
Workload ParseWorkload(const std::string& text, const std::string& file);

}  // namespace evald
