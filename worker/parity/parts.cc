#include "worker/parity/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "worker/parity/texts.h"

namespace evald::parity {
namespace {

using Tokens = std::vector<int32_t>;

constexpr size_t kNextTokens = 8;  // scored as the next token
constexpr size_t kOwnTokens = 6;   // at the end of a text, scored together
constexpr size_t kLong = 300;      // tokens of the long part
constexpr size_t kBeyond = 24;     // tokens behind an edge
constexpr size_t kShortest = 4;    // a part has at least so many tokens
// Servers score windows of two tokens less than their context (worker/server/plan.h).
constexpr int kSpare = 2;

// Different tokens of the texts, taken from all over them, other than `without`.
Tokens Others(const std::vector<Tokens>& texts, int32_t without, size_t count) {
  Tokens all;
  for (const Tokens& text : texts) all.insert(all.end(), text.begin(), text.end());
  std::set<int32_t> seen = {without};
  Tokens others;
  const size_t step = std::max<size_t>(1, all.size() / (count + 1));
  for (size_t begin = 0; begin < step && others.size() < count; ++begin) {
    for (size_t i = begin; i < all.size() && others.size() < count; i += step) {
      if (seen.insert(all[i]).second) others.push_back(all[i]);
    }
  }
  return others;
}

Part PartOf(const Tokens& tokens, const std::vector<Tokens>& texts, std::string name) {
  Part part;
  part.name = std::move(name);
  const Tokens before(tokens.begin(), tokens.end() - 1);
  Tokens next = Others(texts, tokens.back(), kNextTokens - 1);
  next.insert(next.begin(), tokens.back());
  for (const int32_t token : next)
    part.windows.push_back({before, {token}, static_cast<int>(before.size()) - 1});
  const size_t own = std::min(kOwnTokens, tokens.size() - 2);
  part.windows.push_back({before, Tokens(tokens.end() - static_cast<ptrdiff_t>(own), tokens.end()),
                          static_cast<int>(before.size() - own)});
  part.rows = static_cast<int64_t>(before.size() + part.windows.size());
  return part;
}

// All texts one after another, again and again, up to so many tokens.
Tokens LongText(const std::vector<Tokens>& texts, size_t length) {
  Tokens tokens;
  for (size_t i = 0; tokens.size() < length; ++i) {
    const Tokens& text = texts[i % texts.size()];
    tokens.insert(tokens.end(), text.begin(), text.end());
  }
  tokens.resize(length);
  return tokens;
}

}  // namespace

std::vector<Part> MakeParts(const Tokenizer& tokenizer, int max_length,
                            const std::vector<Edge>& edges) {
  std::vector<Tokens> texts;
  for (const std::string& text : Texts()) {
    Tokens tokens = tokenizer.Encode(text, true);
    if (tokens.size() >= kShortest) texts.push_back(std::move(tokens));
  }
  std::vector<Part> parts;
  if (texts.empty()) return parts;
  const auto most = static_cast<size_t>(std::max(0, max_length - kSpare));
  for (Tokens tokens : texts) {
    tokens.resize(std::min(tokens.size(), most));
    if (tokens.size() < kShortest) continue;
    parts.push_back(PartOf(tokens, texts, fmt::format("a text of {} tokens", tokens.size())));
  }
  const auto add_long = [&](size_t length, const std::string& name) {
    if (length > most) return;
    parts.push_back(PartOf(LongText(texts, length), texts, name));
    parts.back().is_long = true;
  };
  add_long(kLong, fmt::format("{} tokens", kLong));
  for (const Edge& edge : edges) {
    const size_t length = static_cast<size_t>(edge.tokens) + kBeyond;
    add_long(length, fmt::format("{} tokens, beyond {}", length, edge.name));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.rows < b.rows; });
  return parts;
}

}  // namespace evald::parity
