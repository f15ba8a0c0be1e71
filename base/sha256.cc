#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/file_pieces.h"
#include "base/hash.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kKeyDigits = 32;

void Check(int done) {
  if (done != 1) throw Error(ErrorKind::kInternal, "OpenSSL computes no SHA-256");
}

std::string HexOf(const unsigned char* bytes, unsigned int count) {
  std::string hex;
  for (unsigned int i = 0; i < count; ++i)
    fmt::format_to(std::back_inserter(hex), "{:02x}", bytes[i]);
  return hex;
}

}  // namespace

struct Sha256Hasher::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() {
    if (context == nullptr) throw std::bad_alloc();
  }
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256Hasher::Sha256Hasher() : state_(std::make_unique<State>()) {
  Check(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}
Sha256Hasher::~Sha256Hasher() = default;
Sha256Hasher::Sha256Hasher(Sha256Hasher&&) noexcept = default;
Sha256Hasher& Sha256Hasher::operator=(Sha256Hasher&&) noexcept = default;

void Sha256Hasher::Update(const void* data, size_t bytes) {
  Check(EVP_DigestUpdate(state_->context, data, bytes));
}

std::string Sha256Hasher::Hex() const {
  const State end;
  Check(EVP_MD_CTX_copy_ex(end.context, state_->context));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  Check(EVP_DigestFinal_ex(end.context, digest, &bytes));
  return HexOf(digest, bytes);
}

std::string HmacSha256Hex(std::string_view key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  const auto* of = reinterpret_cast<const unsigned char*>(text.data());
  Check(::HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), of, text.size(), digest,
               &bytes) != nullptr);
  return HexOf(digest, bytes);
}

std::string Sha256OfFile(int fd, const std::filesystem::path& path) {
  Sha256Hasher hasher;
  ForEachPiece(fd, path, [&](std::string_view piece) { hasher.Update(piece); });
  return hasher.Hex();
}

std::string ContentKey(std::string_view text) { return Sha256Hex(text).substr(0, kKeyDigits); }

}  // namespace evald
