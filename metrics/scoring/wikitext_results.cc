// process_results of the task wikitext: words and bytes are those of the page as it is.
#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/task_results.h"

namespace evald {
namespace {

Json ScoreWikitext(const Json& doc, const std::vector<Json>& results) {
  if (results.size() != 1)
    throw Error(ErrorKind::kInput, "expected one log-likelihood for a page of text");
  const auto page = Field<std::string>(doc, "page", "the document");
  const int64_t words = FindMetric("word_perplexity")->rolling->length(page);
  const auto bytes = static_cast<int64_t>(page.size());
  return {{"word_perplexity", Json::array({results[0], words})},
          {"byte_perplexity", Json::array({results[0], bytes})},
          {"bits_per_byte", Json::array({results[0], bytes})}};
}

}  // namespace

extern constinit const TaskResults kWikitextResults = {
    "wikitext/preprocess_wikitext.process_results", ScoreWikitext};

}  // namespace evald
