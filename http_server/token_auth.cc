#include "http_server/token_auth.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"
#include "http_server/message.h"
#include "http_server/target.h"

namespace evald::http {
namespace {

constexpr size_t kTokenBytesMin = 16;

Role ParseRole(std::string_view name) {
  for (const Role role : {Role::kRead, Role::kSubmit, Role::kAdmin, Role::kWorker}) {
    if (RoleName(role) == name) return role;
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("role '{}': expected read, submit, admin or worker{}", name,
                          Suggestion(name, {"read", "submit", "admin", "worker"})));
}

void RequirePrivate(const std::filesystem::path& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0) return;
  if (info.st_uid != ::geteuid() && info.st_uid != 0) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{}: belongs to user {}, who could add tokens", file.string(), info.st_uid),
        fmt::format("chown {} it", ::geteuid()));
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: others than its owner may write it", file.string()),
                "chmod go-w it");
  }
}

}  // namespace

TokenHash HashOfToken(std::string_view token) {
  TokenHash hash;
  ::SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

std::string HexOf(const TokenHash& hash) {
  std::string hex;
  for (const unsigned char byte : hash) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::optional<TokenHash> ParseTokenHash(std::string_view hex) {
  TokenHash hash{};
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  for (size_t i = 0; i < hash.size(); ++i) {
    const int high = HexDigit(hex[2 * i]), low = HexDigit(hex[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    hash[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return hash;
}

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kNone:
      return "none";
    case Role::kRead:
      return "read";
    case Role::kSubmit:
      return "submit";
    case Role::kAdmin:
      return "admin";
    case Role::kWorker:
      return "worker";
  }
  return "none";
}

bool Allows(Role has, Role needs) {
  if (needs == Role::kNone) return true;
  if (needs == Role::kWorker) return has == Role::kWorker || has == Role::kAdmin;
  return has != Role::kWorker && static_cast<int>(has) >= static_cast<int>(needs);
}

void TokenAuth::Add(std::string name, Role role, std::string_view token) {
  if (token.size() < kTokenBytesMin) {
    throw Error(ErrorKind::kUsage,
                fmt::format("token '{}' has {} characters, expected at least {}", name,
                            token.size(), kTokenBytesMin),
                "make one with: openssl rand -hex 32");
  }
  entries_.push_back({{std::move(name), role}, HashOfToken(token)});
}

void TokenAuth::AddHash(std::string name, Role role, std::string_view hex) {
  const std::optional<TokenHash> hash = ParseTokenHash(hex);
  if (!hash) throw Error(ErrorKind::kUsage, "expected sha256: and 64 hexadecimal digits");
  entries_.push_back({{std::move(name), role}, *hash});
}

// A line of a tokens file.
void TokenAuth::AddLine(const std::string& line, std::string_view reserved) {
  std::istringstream words(line);
  std::string name, role, hash, more;
  if (!(words >> name >> role >> hash) || (words >> more))
    throw Error(ErrorKind::kUsage, "expected three words: name, role and sha256:<hash>");
  constexpr std::string_view kPrefix = "sha256:";
  if (!hash.starts_with(kPrefix)) {
    throw Error(ErrorKind::kUsage, "expected a hash, not a token",
                "hash it with: printf %s \"$TOKEN\" | sha256sum");
  }
  if (PrintableLine(name) != name) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}': expected a name of printable characters", PrintableLine(name)));
  }
  if (!reserved.empty() && name.starts_with(reserved)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}': names that begin with '{}' are evald's own", name, reserved),
                "give the token another name");
  }
  AddHash(name, ParseRole(role), std::string_view(hash).substr(kPrefix.size()));
  for (size_t i = 0; i + 1 < entries_.size(); ++i) {
    if (entries_[i].hash != entries_.back().hash) continue;
    throw Error(ErrorKind::kUsage,
                fmt::format("'{}' has the same token as '{}'", name, entries_[i].principal.name),
                "give each name a token of its own");
  }
}

TokenAuth TokenAuth::FromFile(const std::filesystem::path& file, std::string_view reserved) {
  RequirePrivate(file);
  TokenAuth auth;
  int number = 0;
  for (const std::string& line : Split(ReadFile(file), '\n')) {
    ++number;
    if (Trim(line).empty() || Trim(line).front() == '#') continue;
    try {
      auth.AddLine(line, reserved);
    } catch (Error& e) {
      throw Error(ErrorKind::kUsage, fmt::format("{}:{}: {}", file.string(), number, e.message()),
                  e.remedy());
    }
  }
  return auth;
}

std::optional<Principal> TokenAuth::Check(std::string_view token) const {
  const TokenHash hash = HashOfToken(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    const bool equal = ::CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0;
    found = equal ? &entry : found;
  }
  if (found != nullptr) return found->principal;
  return changing_ ? changing_(token) : std::nullopt;
}

std::optional<std::string_view> BearerToken(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() <= kScheme.size() ||
      !EqualsIgnoringCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return std::nullopt;
  }
  const std::string_view token = Trim(authorization.substr(kScheme.size()));
  if (token.empty()) return std::nullopt;
  return token;
}

}  // namespace evald::http
