#include "fetch/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "base/file.h"
#include "base/file_pieces.h"
#include "evald/error.h"

namespace evald::fetch {
namespace {

void CheckDigest(int done) {
  if (done != 1) throw Error(ErrorKind::kInternal, "OpenSSL computes no SHA-1");
}

}  // namespace

std::string GitBlobOfFile(int fd, const std::filesystem::path& path) {
  struct stat about{};
  if (::fstat(fd, &about) != 0) ThrowErrno(path, "fstat", errno);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(::EVP_MD_CTX_new(),
                                                                   ::EVP_MD_CTX_free);
  CheckDigest(::EVP_DigestInit_ex(context.get(), ::EVP_sha1(), nullptr));
  const std::string head = fmt::format("blob {}", about.st_size);
  CheckDigest(::EVP_DigestUpdate(context.get(), head.c_str(), head.size() + 1));  // with its zero
  ForEachPiece(fd, path, [&](std::string_view piece) {
    CheckDigest(::EVP_DigestUpdate(context.get(), piece.data(), piece.size()));
  });
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  CheckDigest(::EVP_DigestFinal_ex(context.get(), digest, &bytes));
  std::string hex;
  for (unsigned int i = 0; i < bytes; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

}  // namespace evald::fetch
