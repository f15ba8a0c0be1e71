#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace evald::tok {

/// Remembers the tokens of short words in two tables of fixed size: one for words of up to 23 bytes
/// and 9 tokens, one for up to 119 bytes and 33 tokens, 3 MB together. A word may stand in one of
/// two places. A new word replaces the older word of the two. One thread at a time.
class WordCache {
 public:
  WordCache();

  /// Appends the tokens of `word` (not empty). False if the word is not known.
  bool Get(std::string_view word, std::vector<int32_t>* tokens) const;
  void Put(std::string_view word, const int32_t* tokens, size_t count);

 private:
  template <size_t kWords, size_t kTokens>
  struct Entry {
    static constexpr size_t kTokensMax = kTokens;
    /// The word's bytes, zeros, and its length in the last byte.
    std::array<uint64_t, kWords> key{};
    int32_t count = 0;
    std::array<int32_t, kTokens> tokens{};
  };
  using Short = Entry<3, 9>;
  using Long = Entry<15, 33>;
  static_assert(sizeof(Short) == 64 && sizeof(Long) == 256);

  template <typename E>
  static bool GetFrom(const std::vector<E>& table, std::string_view word,
                      std::vector<int32_t>* tokens);
  template <typename E>
  static void PutInto(std::vector<E>* table, std::string_view word, const int32_t* tokens,
                      size_t count);

  std::vector<Short> short_;
  std::vector<Long> long_;
};

}  // namespace evald::tok
