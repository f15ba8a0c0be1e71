#include "worker/parity/continuations.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"
#include "worker/parity/texts.h"

namespace evald::parity {
namespace {

constexpr std::chrono::milliseconds kTextStep{50};
constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD: half a character

}  // namespace

std::vector<Continuation> ContinuationsOf(Engine* engine, const Tokenizer& tokenizer) {
  std::vector<Continuation> all;
  for (const std::string& text : Texts()) {
    Request request;
    request.task = "parity check";
    request.context = text;
    request.context_tokens = tokenizer.Encode(text, true);
    request.sampling.max_gen_toks = kContinuationTokens;
    engine->Submit(all.size(), std::move(request));
    all.push_back({text, ""});
  }
  while (engine->pending() > 0) {
    for (const Finished& finished : engine->Step(kTextStep)) {
      if (finished.refused) throw Error(*finished.refused);
      all[finished.tag].text = finished.generation.text;
    }
  }
  std::erase_if(all, [](const Continuation& one) {
    return one.text.find(kReplacement) != std::string::npos;
  });
  return all;
}

std::string Different(const std::vector<Continuation>& expected,
                      const std::vector<std::string>& found) {
  size_t equal = 0;
  std::string first;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (found[i] == expected[i].text) {
      ++equal;
    } else if (first.empty()) {
      first = fmt::format("it continues {} by {}, where evald's own engine has {}",
                          ToLine(Json(expected[i].prompt)), ToLine(Json(found[i])),
                          ToLine(Json(expected[i].text)));
    }
  }
  if (2 * equal >= expected.size()) return "";
  return fmt::format("only {} of {} texts are those of evald's own engine: {}", equal,
                     expected.size(), first);
}

}  // namespace evald::parity
