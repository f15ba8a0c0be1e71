#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace evald {

/// Streaming XXH3-128 (xxHash 0.8). Not cryptographic: it detects accidents and names contents. One
/// thread at a time.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void Update(const void* data, size_t bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }
  /// The hash of all bytes so far: 32 lower-case hexadecimal digits. More bytes may follow.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// XXH3-128 of `text` as 32 hexadecimal digits.
std::string HashHex(std::string_view text);

/// SHA-256 of `text` as 64 hexadecimal digits: lm-evaluation-harness's doc_hash.
std::string Sha256Hex(std::string_view text);

}  // namespace evald
