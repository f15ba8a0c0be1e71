#include "bench/bpe_training.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <string_view>
#include <unordered_map>

#include "base/jsonl.h"
#include "evald/json.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/normalizers.h"
#include "tokenizer/pre_tokenizers.h"
#include "tokenizer/unicode.h"

namespace evald::bench {
namespace {

constexpr size_t kSymbolsMax = 48;          // of a word; longer words are not used for training
constexpr int64_t kCharacterCountMin = 20;  // a rarer character gets no token (kinds without bytes)

struct Word {
  std::vector<int32_t> symbols;
  int64_t count = 0;
};

// Learns merges from words.
class Trainer {
 public:
  explicit Trainer(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}

  void Add(Word word) {
    words_.push_back(std::move(word));
    CountPairs(words_.size() - 1, 1);
  }

  void Learn(size_t merges) {
    for (const auto& [pair, count] : counts_) queue_.push({count, pair});
    while (merges_.size() < merges && !queue_.empty()) {
      const Ranked best = queue_.top();
      queue_.pop();
      const int64_t now = counts_[best.pair];
      if (now != best.count) {
        if (now > 1) queue_.push({now, best.pair});
        continue;
      }
      if (now < 2) break;
      Merge(best.pair);
    }
  }

  const std::vector<std::string>& tokens() const { return tokens_; }
  const Json& merges() const { return merges_; }

 private:
  struct Ranked {
    int64_t count;
    uint64_t pair;
    bool operator<(const Ranked& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };
  static uint64_t PairOf(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  }

  void CountPairs(size_t at, int sign) {
    const Word& word = words_[at];
    for (size_t i = 0; i + 1 < word.symbols.size(); ++i) {
      const uint64_t pair = PairOf(word.symbols[i], word.symbols[i + 1]);
      counts_[pair] += sign * word.count;
      if (sign > 0) places_[pair].push_back(static_cast<uint32_t>(at));
    }
  }

  void Merge(uint64_t pair) {
    const auto left = static_cast<int32_t>(pair >> 32);
    const auto right = static_cast<int32_t>(pair & 0xFFFFFFFF);
    const auto id = static_cast<int32_t>(tokens_.size());
    merges_.push_back({tokens_[static_cast<size_t>(left)], tokens_[static_cast<size_t>(right)]});
    tokens_.push_back(tokens_[static_cast<size_t>(left)] + tokens_[static_cast<size_t>(right)]);
    std::vector<uint32_t> places = std::move(places_[pair]);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    for (const uint32_t at : places) {
      CountPairs(at, -1);
      Replace(&words_[at].symbols, left, right, id);
      CountPairs(at, 1);
      const std::vector<int32_t>& symbols = words_[at].symbols;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (symbols[i] != id && symbols[i + 1] != id) continue;
        const uint64_t fresh = PairOf(symbols[i], symbols[i + 1]);
        queue_.push({counts_[fresh], fresh});
      }
    }
    counts_[pair] = 0;
  }

  static void Replace(std::vector<int32_t>* symbols, int32_t left, int32_t right, int32_t id) {
    size_t kept = 0;
    for (size_t i = 0; i < symbols->size(); ++i) {
      const bool found =
          i + 1 < symbols->size() && (*symbols)[i] == left && (*symbols)[i + 1] == right;
      (*symbols)[kept++] = found ? id : (*symbols)[i];
      if (found) ++i;
    }
    symbols->resize(kept);
  }

  std::vector<std::string> tokens_;
  std::vector<Word> words_;
  std::unordered_map<uint64_t, int64_t> counts_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> places_;  // words that hold or held a pair
  std::priority_queue<Ranked> queue_;
  Json merges_ = Json::array();
};

Json Gpt4Splitter(const std::string& digits) {
  const std::string pattern = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)" + digits +
                              R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", pattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", {split, bytes}}};
}

Json PreTokenizerOf(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::kLlama3:
      return Gpt4Splitter(R"(\p{N}{1,3})");
    case TokenizerKind::kQwen2:
      return Gpt4Splitter(R"(\p{N})");
    case TokenizerKind::kGpt2:
      return {{"type", "ByteLevel"},
              {"add_prefix_space", false},
              {"trim_offsets", true},
              {"use_regex", true}};
    case TokenizerKind::kLlama2:
      break;
  }
  // Used for training only. The tokenizer has no pre-tokenizer.
  return {
      {"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "never"}, {"split", true}};
}

Json NormalizerOf(TokenizerKind kind) {
  if (kind == TokenizerKind::kQwen2) return {{"type", "NFC"}};
  if (kind != TokenizerKind::kLlama2) return nullptr;
  const Json prepend = {{"type", "Prepend"}, {"prepend", "▁"}};
  const Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  return {{"type", "Sequence"}, {"normalizers", {prepend, replace}}};
}

// The number of times that each word occurs, in the vocabulary's spelling.
std::unordered_map<std::string, int64_t> CountWords(TokenizerKind kind,
                                                    const std::vector<std::string>& lines) {
  const auto normalizer = tok::MakeNormalizer(NormalizerOf(kind), "normalizer");
  const tok::PreTokenization split =
      tok::MakePreTokenizer(PreTokenizerOf(kind), normalizer != nullptr, "pre_tokenizer");
  std::unordered_map<std::string, int64_t> counts;
  tok::Pieces pieces;
  for (const std::string& line : lines) {
    pieces.Reset(normalizer ? normalizer->Apply(line) : line, true);
    split.splitter->Apply(&pieces);
    for (const tok::Piece& piece : pieces.list) {
      const std::string text(pieces.View(piece));
      ++counts[split.spelling == tok::Spelling::kBytes ? tok::ToByteAlphabet(text) : text];
    }
  }
  return counts;
}

std::vector<std::string> Characters(const std::string& word) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    tok::NextCodePoint(word, &at);
    characters.push_back(word.substr(begin, at - begin));
  }
  return characters;
}

// The tokens with which training begins.
std::vector<std::string> FirstTokens(TokenizerKind kind,
                                     const std::unordered_map<std::string, int64_t>& words) {
  std::vector<std::string> tokens;
  if (kind != TokenizerKind::kLlama2) {
    for (int byte = 0; byte < 256; ++byte) {
      tokens.push_back(tok::ToByteAlphabet(std::string(1, static_cast<char>(byte))));
    }
    return tokens;
  }
  tokens = {"<unk>", "<s>", "</s>"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte));
  std::map<std::string, int64_t> characters;
  for (const auto& [word, count] : words) {
    for (const std::string& character : Characters(word)) characters[character] += count;
  }
  for (const auto& [character, count] : characters) {
    if (count >= kCharacterCountMin) tokens.push_back(character);
  }
  return tokens;
}

Json TokenizerJson(TokenizerKind kind, const Trainer& trainer) {
  const bool pieces = kind == TokenizerKind::kLlama2;
  Json vocabulary = Json::object();
  for (size_t id = 0; id < trainer.tokens().size(); ++id) vocabulary[trainer.tokens()[id]] = id;
  Json added = Json::array();
  const auto add = [&](size_t id, const char* content) {
    added.push_back({{"id", id},
                     {"content", content},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  };
  if (pieces) {
    add(1, "<s>");
    add(2, "</s>");
  } else {
    add(trainer.tokens().size(), "<|endoftext|>");
    add(trainer.tokens().size() + 1, "<|im_start|>");
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", NormalizerOf(kind)},
          {"pre_tokenizer", pieces ? Json() : PreTokenizerOf(kind)},
          {"post_processor", nullptr},
          {"decoder", {{"type", pieces ? "ByteFallback" : "Fuse"}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", pieces ? Json("<unk>") : Json()},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", pieces},
            {"byte_fallback", pieces},
            {"ignore_merges", kind == TokenizerKind::kLlama3},
            {"vocab", vocabulary},
            {"merges", trainer.merges()}}}};
}

}  // namespace

const char* NameOf(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::kGpt2:
      return "gpt2-like";
    case TokenizerKind::kLlama3:
      return "llama3-like";
    case TokenizerKind::kQwen2:
      return "qwen2-like";
    case TokenizerKind::kLlama2:
      return "llama2-like";
  }
  return "";
}

std::string TrainTokenizer(TokenizerKind kind, const std::vector<std::string>& lines,
                           size_t merges) {
  const std::unordered_map<std::string, int64_t> words = CountWords(kind, lines);
  Trainer trainer(FirstTokens(kind, words));
  std::unordered_map<std::string, int32_t> ids;
  for (size_t id = 0; id < trainer.tokens().size(); ++id)
    ids[trainer.tokens()[id]] = static_cast<int32_t>(id);
  const std::map<std::string, int64_t> sorted(words.begin(), words.end());
  for (const auto& [text, count] : sorted) {
    Word word;
    word.count = count;
    for (const std::string& character : Characters(text)) {
      const auto found = ids.find(character);
      if (found == ids.end()) break;
      word.symbols.push_back(found->second);
    }
    if (word.symbols.size() <= kSymbolsMax) trainer.Add(std::move(word));
  }
  trainer.Learn(merges);
  return ToLine(TokenizerJson(kind, trainer));
}

}  // namespace evald::bench
