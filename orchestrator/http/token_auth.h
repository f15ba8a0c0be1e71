#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace evald::http {

/// What a token may do. read < submit < admin; worker stands apart: only what workers and agents
/// need. kNone marks what needs no token.
enum class Role { kNone, kRead, kSubmit, kAdmin, kWorker };

std::string_view RoleName(Role role);

/// Who asks.
struct Principal {
  std::string name;  ///< the token's; "" where no tokens are in force
  Role role = Role::kNone;
};

/// Whether `has` is enough for what needs `needs`.
bool Allows(Role has, Role needs);

/// The tokens in force. Only hashes are kept: SHA-256, which is enough because tokens are random
/// and long (a password would need a slow hash). Any thread; immutable.
class TokenAuth {
 public:
  TokenAuth() = default;  ///< no tokens

  /// Adds one. `token` must have at least 16 characters. Throws Error(kUsage).
  void Add(std::string name, Role role, std::string_view token);
  /// Adds a hash: 64 hexadecimal digits.
  void AddHash(std::string name, Role role, std::string_view hex);

  /// Reads a file of lines "<name> <read|submit|admin|worker> sha256:<hex>"; blank lines and lines
  /// that begin with "#" are skipped. Throws Error(kUsage) naming file and line, and for a file
  /// that others than its owner may write.
  static TokenAuth FromFile(const std::filesystem::path& file);

  bool empty() const { return entries_.empty(); }

  /// Who holds `token`. Takes the same time whichever entry matches, or none: each hash is compared
  /// whole (CRYPTO_memcmp), and all of them are.
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
