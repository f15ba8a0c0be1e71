#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace evald::http {

/// A token's permissions. read < submit < admin; worker stands apart, with only the permissions
/// that workers and agents need. kNone marks requests that need no token.
enum class Role { kNone, kRead, kSubmit, kAdmin, kWorker };

std::string_view RoleName(Role role);

/// The caller.
struct Principal {
  std::string name;  ///< the token's name; "" if no tokens are in force
  Role role = Role::kNone;
};

/// Whether the role `has` suffices for a request that needs `needs`.
bool Allows(Role has, Role needs);

/// SHA-256 of a token. It suffices because tokens are random and long (a password would need a slow
/// hash).
using TokenHash = std::array<unsigned char, 32>;
TokenHash HashOfToken(std::string_view token);
/// 64 hexadecimal digits.
std::string HexOf(const TokenHash& hash);
/// Nothing for a text that is not 64 hexadecimal digits.
std::optional<TokenHash> ParseTokenHash(std::string_view hex);

/// The tokens in force. Only hashes are kept. Any thread; immutable once a server has it.
class TokenAuth {
 public:
  TokenAuth() = default;  ///< no tokens

  /// Adds a token, which must have at least 16 characters. Throws Error(kUsage).
  void Add(std::string name, Role role, std::string_view token);
  /// Adds a hash: 64 hexadecimal digits.
  void AddHash(std::string name, Role role, std::string_view hex);

  /// Reads a file of lines "<name> <read|submit|admin|worker> sha256:<hex>". Skips blank lines and
  /// lines that begin with "#". Throws Error(kUsage) naming file and line, also if others than its
  /// owner may write to the file. Names that begin with `reserved` are refused, unless it is "".
  static TokenAuth FromFile(const std::filesystem::path& file, std::string_view reserved = "");

  /// Tokens that come and go while a server serves: `find` tells the holder of this token. Any
  /// thread may call `find`, which takes the same time whichever token matches.
  using Find = std::function<std::optional<Principal>(std::string_view token)>;
  void AddChanging(Find find) { changing_ = std::move(find); }

  bool empty() const { return entries_.empty() && !changing_; }

  /// The holder of `token`. Takes the same time whichever entry matches, if any: all hashes are
  /// compared, each as a whole (CRYPTO_memcmp).
  std::optional<Principal> Check(std::string_view token) const;

 private:
  struct Entry {
    Principal principal;
    TokenHash hash;
  };
  void AddLine(const std::string& line, std::string_view reserved);

  std::vector<Entry> entries_;
  Find changing_;
};

/// The token of "Authorization: Bearer <token>" (RFC 6750), or nothing.
std::optional<std::string_view> BearerToken(std::string_view authorization);

}  // namespace evald::http
