#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace evald {

/// Streaming SHA-256 (FIPS 180-4). It names contents that are shared among people who do not trust
/// each other: no one can make two contents with one name, as would be possible with XXH3
/// (base/hash.h). One thread at a time.
class Sha256Hasher {
 public:
  Sha256Hasher();
  ~Sha256Hasher();
  Sha256Hasher(Sha256Hasher&&) noexcept;
  Sha256Hasher& operator=(Sha256Hasher&&) noexcept;

  void Update(const void* data, size_t bytes);
  void Update(std::string_view text) { Update(text.data(), text.size()); }
  /// The hash of all bytes so far: 64 lower-case hexadecimal digits. More bytes may follow.
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The SHA-256 of an open file, read in pieces from its beginning; `path` names it in errors.
/// Throws Error(kInfrastructure) if reading fails.
std::string Sha256OfFile(int fd, const std::filesystem::path& path);

/// HMAC-SHA-256 (RFC 2104) of `text` under `key`, as 64 lower-case hexadecimal digits.
std::string HmacSha256Hex(std::string_view key, std::string_view text);

/// A key of 32 hexadecimal digits: the first half of the SHA-256 of `text`.
std::string ContentKey(std::string_view text);

}  // namespace evald
