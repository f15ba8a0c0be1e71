#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace evald::tok {

/// Hashes strings so that a string_view can be looked up in a map of strings.
struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

/// The tokens of a model by id and by spelling. Immutable once filled; any thread may read.
class Vocabulary {
 public:
  /// Ids are below this. No vocabulary in use comes near, and a hostile one must not take much
  /// memory.
  static constexpr int32_t kIdsMax = 1 << 24;

  Vocabulary() = default;
  Vocabulary(Vocabulary&&) = default;  // a copy would point into the original
  Vocabulary& operator=(Vocabulary&&) = default;

  /// Throws Error(kInput) "<where>: ..." if the id is out of range or another token has it. If a
  /// token is added again, the later id counts.
  void Add(const std::string& token, int64_t id, const std::string& where);

  /// -1 if there is no such token.
  int32_t Id(std::string_view token) const;
  /// Null if there is no such id.
  const std::string* Token(int32_t id) const;
  /// Calls `visit(spelling, id)` for every token, in no order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [token, id] : ids_) visit(token, id);
  }
  /// Number of tokens, which may be less than the highest id + 1.
  int32_t size() const { return static_cast<int32_t>(ids_.size()); }
  /// -1 if there are no tokens.
  int32_t highest_id() const { return highest_id_; }

 private:
  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> ids_;
  std::unordered_map<int32_t, const std::string*> tokens_;  // into the keys of ids_
  int32_t highest_id_ = -1;
};

}  // namespace evald::tok
