#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
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

/// The tokens in force. Only hashes are kept: SHA-256, which suffices because tokens are random and
/// long (a password would need a slow hash). Any thread; immutable.
class TokenAuth {
 public:
  TokenAuth() = default;  ///< no tokens

  /// Adds a token, which must have at least 16 characters. Throws Error(kUsage).
  void Add(std::string name, Role role, std::string_view token);
  /// Adds a hash: 64 hexadecimal digits.
  void AddHash(std::string name, Role role, std::string_view hex);

  /// Reads a file of lines "<name> <read|submit|admin|worker> sha256:<hex>". Skips blank lines and
  /// lines that begin with "#". Throws Error(kUsage) naming file and line, also if others than its
  /// owner may write to the file.
  static TokenAuth FromFile(const std::filesystem::path& file);

  bool empty() const { return entries_.empty(); }

  /// The holder of `token`. Takes the same time whichever entry matches, if any: all hashes are
  /// compared, each as a whole (CRYPTO_memcmp).
  std::optional<Principal> Check(std::string_view token) const;

 private:
  using Hash = std::array<unsigned char, 32>;
  struct Entry {
    Principal principal;
    Hash hash;
  };
  std::vector<Entry> entries_;
};

/// The token of "Authorization: Bearer <token>" (RFC 6750), or nothing.
std::optional<std::string_view> BearerToken(std::string_view authorization);

}  // namespace evald::http
