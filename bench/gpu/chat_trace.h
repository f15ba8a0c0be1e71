#pragma once

#include <cstdint>
#include <vector>

namespace evald::bench {

struct ChatLengths {
  int prompt = 0;  ///< tokens
  int output = 0;
};

/// Lengths of `count` requests of a public chat trace. The same count and seed give the same
/// lengths.
///
/// The trace is ShareGPT's conversations, as SGLang's bench_serving asks them. The numbers here are
/// the histograms that SGLang's documentation shows of such a server
/// (docs/references/production_metrics.md, 2024-11: 2,104 requests, 500,552 tokens of prompts and
/// 424,529 of answers, so 237.9 and 201.8 each). Other runs agree: 1,000 requests of the same data
/// had 229,711 and 203,068 tokens with Llama-3.1-8B (vllm-project/vllm, pull request 18566).
///
/// The lengths are the quantiles (i + 1/2) / count of each distribution. Between two edges of the
/// histogram, lengths are spread evenly in their logarithm. The means are then 237 and 208. Prompts
/// and answers are paired at random.
std::vector<ChatLengths> ChatTrace(int count, uint64_t seed);

}  // namespace evald::bench
