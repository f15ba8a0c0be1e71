#pragma once

#include <cstdint>
#include <vector>

namespace evald::bench {

struct ChatLengths {
  int prompt = 0;  ///< tokens
  int output = 0;
};

/// Lengths of `count` requests of a public chat trace, the same for the same count and seed.
///
/// The trace is ShareGPT's conversations as SGLang's bench_serving asks them; what is written down
/// here are the histograms that SGLang's documentation shows of such a server
/// (docs/references/production_metrics.md, 2024-11: 2,104 requests, 500,552 tokens of prompts and
/// 424,529 of answers, so 237.9 and 201.8 each). Other runs agree: 1,000 requests of the same data
/// had 229,711 and 203,068 tokens with Llama-3.1-8B (vllm-project/vllm, pull request 18566).
///
/// Of each distribution the quantiles (i + 1/2) / count are taken, with lengths between two edges
/// of the histogram spread evenly in their logarithm. That gives means of 237 and 208. Prompts and
/// answers are paired at random.
std::vector<ChatLengths> ChatTrace(int count, uint64_t seed);

}  // namespace evald::bench
