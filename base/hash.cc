#include "base/hash.h"

#include <fmt/format.h>
#include <openssl/sha.h>
#include <xxhash.h>

#include <new>

namespace evald {

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
};

namespace {

std::string ToHex(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::Update(const void* data, size_t bytes) {
  XXH3_128bits_update(state_->xxh, data, bytes);
}

std::string Hasher::Hex() const { return ToHex(XXH3_128bits_digest(state_->xxh)); }

std::string HashHex(std::string_view text) { return ToHex(XXH3_128bits(text.data(), text.size())); }

std::string Sha256Hex(std::string_view text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace evald
