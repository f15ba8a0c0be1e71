#include "tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"

namespace evald::tok {

void Vocabulary::Add(const std::string& token, int64_t id, const std::string& where) {
  if (id < 0 || id >= kIdsMax) {
    throw Error(ErrorKind::kInput, fmt::format("{}: token '{}' has the id {}, expected 0 to {}",
                                               where, token, id, kIdsMax - 1));
  }
  const auto [at, fresh] = ids_.try_emplace(token, static_cast<int32_t>(id));
  if (!fresh) {
    tokens_.erase(at->second);
    at->second = static_cast<int32_t>(id);
  }
  const auto [owner, free] = tokens_.try_emplace(at->second, &at->first);
  if (!free) {
    throw Error(ErrorKind::kInput, fmt::format("{}: the tokens '{}' and '{}' share the id {}",
                                               where, *owner->second, token, id));
  }
  highest_id_ = std::max(highest_id_, at->second);
}

int32_t Vocabulary::Id(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

const std::string* Vocabulary::Token(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : found->second;
}

}  // namespace evald::tok
