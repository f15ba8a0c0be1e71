#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace evald::bench {

/// Lines of mixed text, up to `bytes` of it, the same for the same seed and files: half of the
/// lines questions, answers and code from the files under `data_dir` (gsm8k, mmlu, mbpp) where they
/// are, the rest made up: sentences of invented words in ten scripts, source code, tables of
/// numbers, runs of white space, signs and emoji. Words come with the frequencies of a language
/// (the n-th as 1/n), so that a vocabulary trained on one seed knows most words of another. An odd
/// and an even seed take different halves of the files' texts. Some lines have newlines inside.
std::vector<std::string> MixedCorpus(uint64_t seed, uint64_t bytes,
                                     const std::filesystem::path& data_dir);

}  // namespace evald::bench
