// evald-train-tokenizer FOLDER [DATA_DIR]
//
// Writes tokenizer.json and tokenizer_config.json of a byte-level BPE of Llama-3's kind. The
// tokenizer is trained on the benchmark data's texts and on made-up ones, so that prompts have
// about as many tokens as with a model's own tokenizer. Prints {"entries": N, "end": ID}: the
// number of tokens, and the token that ends a text.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/jsonl.h"
#include "bench/bpe_training.h"
#include "bench/text_corpus.h"
#include "evald/error.h"
#include "tokenizer/tokenizer.h"

namespace evald::bench {
namespace {

constexpr uint64_t kTrainingBytes = 16'000'000;
constexpr size_t kMerges = 32'000;
constexpr uint64_t kSeed = 11;
constexpr const char* kEnd = "<|endoftext|>";

void WriteTokenizer(const std::filesystem::path& folder, const std::filesystem::path& data_dir) {
  const std::vector<std::string> lines = MixedCorpus(kSeed, kTrainingBytes, data_dir);
  Json json = ParseJson(TrainTokenizer(TokenizerKind::kLlama3, lines, kMerges), "tokenizer.json");
  json["decoder"] = {{"type", "ByteLevel"},
                     {"add_prefix_space", true},
                     {"trim_offsets", true},
                     {"use_regex", true}};
  std::filesystem::create_directories(folder);
  WriteFileAtomic(folder / "tokenizer.json", ToLine(json));
  const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"eos_token", kEnd},
                       {"model_max_length", 8192},
                       {"clean_up_tokenization_spaces", false}};
  WriteFileAtomic(folder / "tokenizer_config.json", ToLine(config));
  const auto tokenizer = Tokenizer::Load(folder);
  fmt::print("{{\"entries\":{},\"end\":{}}}\n", tokenizer->vocabulary_size(), tokenizer->eos_id());
}

}  // namespace
}  // namespace evald::bench

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: evald-train-tokenizer FOLDER [DATA_DIR]\n");
    return 2;
  }
  try {
    evald::bench::WriteTokenizer(argv[1], argc == 3 ? argv[2] : "");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "evald-train-tokenizer: error: %s\n", e.what());
    return 3;
  }
}
