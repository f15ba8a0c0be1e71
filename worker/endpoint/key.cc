#include "worker/endpoint/key.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "base/random_id.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::endpoint {
namespace {

constexpr size_t kKeyBytesMin = 16;
constexpr uint64_t kKeyBytesMax = 4096;

[[noreturn]] void Refuse(const std::filesystem::path& file, const std::string& why,
                         const std::string& remedy = "") {
  throw Error(ErrorKind::kUsage, fmt::format("key file {}: {}", file.string(), why), remedy);
}

std::string KeyIn(const UniqueFd& fd, const std::filesystem::path& file) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) Refuse(file, "is no regular file");
  if (info.st_uid != ::geteuid())
    Refuse(file, fmt::format("belongs to user {}, expected {}", info.st_uid, ::geteuid()),
           "name a file of your own");
  if ((info.st_mode & 077) != 0)
    Refuse(file, "others than its owner may read or write it", "chmod 600 it");
  std::string key(Trim(ReadFile(fd, file, kKeyBytesMax)));
  const bool visible =
      std::all_of(key.begin(), key.end(), [](char c) { return c > 32 && c < 127; });
  if (key.size() < kKeyBytesMin || !visible) {
    Refuse(file,
           fmt::format("expected a key of at least {} visible ASCII characters", kKeyBytesMin),
           "remove the file, so that a key is made");
  }
  return key;
}

}  // namespace

std::string MakeKey() { return RandomId(8); }

std::string ReadOrMakeKey(const std::filesystem::path& file) {
  const UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!made) {
    if (errno != EEXIST) Refuse(file, std::strerror(errno));
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) Refuse(file, std::strerror(errno));
    return KeyIn(fd, file);
  }
  std::string key = MakeKey();
  const std::string line = key + "\n";
  if (::write(made.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    const int failure = errno;
    ::unlink(file.c_str());
    Refuse(file, std::strerror(failure));
  }
  return key;
}

}  // namespace evald::endpoint
