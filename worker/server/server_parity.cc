#include "worker/server/server_parity.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "worker/parity/texts.h"

namespace evald::server {
namespace {

constexpr const char* kTokenize = "/tokenize";
constexpr size_t kTokensShown = 6;

using Tokens = std::vector<int32_t>;

// Windows [begin, end) have equal tokens and go in one call.
size_t EndOfCall(const ScoringWay& way, const std::vector<ScoreWindow>& windows, size_t begin) {
  size_t end = begin + 1;
  while (end < windows.size() && end - begin < way.together() && way.Takes(windows[end]) &&
         windows[end].tokens == windows[begin].tokens)
    ++end;
  return end;
}

// The scores of windows [begin, end) in one way. Nothing for those that are left to the next way.
std::vector<std::optional<Score>> Call(const ScoringWay& way,
                                       const std::vector<ScoreWindow>& windows, size_t begin,
                                       size_t end, const PostJson& post) {
  std::vector<const ScoreWindow*> asked;
  for (size_t i = begin; i < end; ++i) asked.push_back(&windows[i]);
  const http_client::Response reply = post(way.path(), way.Body(asked));
  if (reply.ok()) return way.Read(asked, reply.body);
  if (!reply.answered() || !way.LeavesToNext(reply.status, WhyNot(reply)))
    throw Error(ErrorKind::kInfrastructure, fmt::format("{}: {}", way.path(), WhyNot(reply)));
  return std::vector<std::optional<Score>>(asked.size());
}

// The server's tokens of a text; nothing if it does not tell them.
std::optional<Tokens> ServersTokens(const Json& body, const PostJson& post) {
  if (body.is_null()) return std::nullopt;
  const http_client::Response reply = post(kTokenize, body);
  if (!reply.ok()) return std::nullopt;
  try {
    return Field<Tokens>(ParseJson(reply.body, kTokenize), "tokens", kTokenize);
  } catch (const Error&) {
    return std::nullopt;  // another server's /tokenize
  }
}

// A few tokens around the first difference.
std::string Around(const Tokens& tokens, size_t at) {
  const size_t begin = at < 2 ? 0 : at - 2, end = std::min(tokens.size(), begin + kTokensShown);
  std::vector<std::string> shown;
  for (size_t i = begin; i < end; ++i) shown.push_back(std::to_string(tokens[i]));
  return fmt::format("[{}{}{}]", begin > 0 ? "..., " : "", Join(shown, ", "),
                     end < tokens.size() ? ", ..." : "");
}

}  // namespace

std::vector<std::optional<double>> ScoresNow(const Scorer& scorer,
                                             const std::vector<ScoreWindow>& windows,
                                             const PostJson& post) {
  std::vector<std::optional<double>> scores(windows.size());
  for (size_t begin = 0, end = 0; begin < windows.size(); begin = end) {
    end = begin + 1;
    for (auto way = scorer.WayFor(windows[begin]); way && !scores[begin];
         way = scorer.WayFor(windows[begin], *way + 1)) {
      const ScoringWay& asked = scorer.way(*way);
      end = EndOfCall(asked, windows, begin);
      const auto found = Call(asked, windows, begin, end, post);
      for (size_t i = begin; i < end; ++i) {
        if (found[i - begin]) scores[i] = found[i - begin]->logprob;
      }
    }
  }
  return scores;
}

std::string OtherTokens(const Dialect& dialect, const std::string& model,
                        const Tokenizer& tokenizer, const PostJson& post) {
  for (const std::string& text : parity::Texts()) {
    const auto theirs = ServersTokens(dialect.TokenizeBody(model, text), post);
    if (!theirs) return "";
    const Tokens own = tokenizer.Encode(text, true);
    if (own == *theirs) continue;
    const auto at = static_cast<size_t>(
        std::mismatch(own.begin(), own.end(), theirs->begin(), theirs->end()).first - own.begin());
    return fmt::format("of {} it makes the tokens {}, where the checkpoint's tokenizer makes {}",
                       ToLine(Json(text)), Around(*theirs, at), Around(own, at));
  }
  return "";
}

}  // namespace evald::server
