#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/vocabulary.h"

namespace evald::tok {

/// Remembers the tokens of short words. Bounded: a shard that is full is emptied. Any thread may
/// call it.
class WordCache {
 public:
  /// Longer words are not kept.
  static constexpr size_t kWordBytesMax = 64;

  /// Appends the tokens of `word`; false when it is not known.
  bool Get(std::string_view word, std::vector<int32_t>* tokens);
  void Put(std::string_view word, const int32_t* tokens, size_t count);

 private:
  static constexpr size_t kShards = 16;
  static constexpr size_t kWordsPerShardMax = 4096;

  struct Shard {
    std::mutex mutex;
    std::unordered_map<std::string, std::vector<int32_t>, StringHash, std::equal_to<>> words;
  };
  Shard& ShardOf(std::string_view word) { return shards_[StringHash{}(word) % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace evald::tok
