#include "tokenizer/word_cache.h"

#include <algorithm>
#include <cstring>

namespace evald::tok {
namespace {

constexpr size_t kShortEntries = size_t{1} << 15;
constexpr size_t kLongEntries = size_t{1} << 12;
constexpr size_t kShortBytesMax = 3 * 8 - 1;
constexpr size_t kLongBytesMax = 15 * 8 - 1;

// Up to eight bytes as a number whose other bytes are zero.
uint64_t Load(const char* bytes, size_t count) {
  if (count >= 8) {
    uint64_t value = 0;
    std::memcpy(&value, bytes, 8);
    return value;
  }
  if (count >= 4) {
    uint32_t low = 0, high = 0;
    std::memcpy(&low, bytes, 4);
    std::memcpy(&high, bytes + count - 4, 4);
    return low | uint64_t{high} << (count - 4) * 8;
  }
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[i])} << i * 8;
  }
  return value;
}

template <size_t kWords>
std::array<uint64_t, kWords> KeyOf(std::string_view word) {
  std::array<uint64_t, kWords> key{};
  for (size_t i = 0; i * 8 < word.size(); ++i)
    key[i] = Load(word.data() + i * 8, word.size() - i * 8);
  key[kWords - 1] |= uint64_t{word.size()} << 56;
  return key;
}

// The first of the two neighbouring places of a key.
template <size_t kWords>
size_t Home(const std::array<uint64_t, kWords>& key, size_t places) {
  uint64_t mixed = 0;
  for (const uint64_t part : key) {
    mixed = (mixed ^ part) * 0x9E3779B97F4A7C15;
    mixed ^= mixed >> 32;
  }
  return mixed & (places - 2);
}

}  // namespace

WordCache::WordCache() : short_(kShortEntries), long_(kLongEntries) {}

template <typename E>
bool WordCache::GetFrom(const std::vector<E>& table, std::string_view word,
                        std::vector<int32_t>* tokens) {
  const auto key = KeyOf<std::tuple_size_v<decltype(E::key)>>(word);
  const size_t home = Home(key, table.size());
  for (size_t at = home; at < home + 2; ++at) {
    const E& entry = table[at];
    if (entry.key != key) continue;
    tokens->insert(tokens->end(), entry.tokens.begin(), entry.tokens.begin() + entry.count);
    return true;
  }
  return false;
}

template <typename E>
void WordCache::PutInto(std::vector<E>* table, std::string_view word, const int32_t* tokens,
                        size_t count) {
  if (count > E::kTokensMax) return;
  const auto key = KeyOf<std::tuple_size_v<decltype(E::key)>>(word);
  const size_t home = Home(key, table->size());
  (*table)[home + 1] = (*table)[home];
  E& entry = (*table)[home];
  entry.key = key;
  entry.count = static_cast<int32_t>(count);
  std::copy(tokens, tokens + count, entry.tokens.begin());
}

bool WordCache::Get(std::string_view word, std::vector<int32_t>* tokens) const {
  if (word.size() <= kShortBytesMax) return GetFrom(short_, word, tokens);
  return word.size() <= kLongBytesMax && GetFrom(long_, word, tokens);
}

void WordCache::Put(std::string_view word, const int32_t* tokens, size_t count) {
  if (word.size() <= kShortBytesMax) {
    PutInto(&short_, word, tokens, count);
  } else if (word.size() <= kLongBytesMax) {
    PutInto(&long_, word, tokens, count);
  }
}

}  // namespace evald::tok
