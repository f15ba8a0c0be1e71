#include "tokenizer/word_cache.h"

namespace evald::tok {

bool WordCache::Get(std::string_view word, std::vector<int32_t>* tokens) {
  if (word.size() > kWordBytesMax) return false;
  Shard& shard = ShardOf(word);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.words.find(word);
  if (found == shard.words.end()) return false;
  tokens->insert(tokens->end(), found->second.begin(), found->second.end());
  return true;
}

void WordCache::Put(std::string_view word, const int32_t* tokens, size_t count) {
  if (word.size() > kWordBytesMax) return;
  Shard& shard = ShardOf(word);
  const std::lock_guard lock(shard.mutex);
  if (shard.words.size() >= kWordsPerShardMax) shard.words.clear();
  shard.words.try_emplace(std::string(word), tokens, tokens + count);
}

}  // namespace evald::tok
