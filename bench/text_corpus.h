#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald::bench {

/// Lines of mixed text, up to `bytes` of it. The same seed and files give the same lines. Half of
/// the lines are questions, answers and code from the files under `data_dir` (gsm8k, mmlu, mbpp),
/// if these exist. The rest is made up: sentences of invented words in ten scripts, source code,
/// tables of numbers, runs of white space, signs and emoji. Words have the frequencies of a
/// language (the n-th 1/n), so a vocabulary trained on one seed knows most words of another. An odd
/// and an even seed take different halves of the files' texts. Some lines contain newlines.
std::vector<std::string> MixedCorpus(uint64_t seed, uint64_t bytes,
                                     const std::filesystem::path& data_dir);

}  // namespace evald::bench
