#include "metrics/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/filter_support.h"
#include "metrics/scoring/math_strings.h"
#include "python/str.h"
#include "python/unicode.h"

namespace evald {
namespace {

std::unique_ptr<Filter> Each(EachFilter::Map map) {
  return std::make_unique<EachFilter>(std::move(map));
}

class TakeFirst : public Filter {
 public:
  Json Apply(const Json& responses, const PreparedDocument&, Fallbacks*) const override {
    if (responses.is_array() && !responses.empty()) return responses.front();
    // Python iterates over a text by character: this gives the first
    const std::vector<Json> items = Iterate(FirstCharacterOf(responses));
    if (items.empty()) throw AnswerError("no text", "take_first: there is no response");
    return items.front();
  }

 private:
  static Json FirstCharacterOf(const Json& responses) {
    if (!responses.is_string()) return responses;
    const auto& text = responses.get_ref<const std::string&>();
    size_t end = std::min<size_t>(1, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
    return text.substr(0, end);
  }
};

class TakeFirstK : public Filter {
 public:
  explicit TakeFirstK(int64_t k) : k_(k) {}
  Json Apply(const Json& responses, const PreparedDocument&, Fallbacks*) const override {
    if (!responses.is_array() || static_cast<int64_t>(responses.size()) < k_) {
      throw Error(ErrorKind::kInput,
                  fmt::format("take_first_k: found {} responses, expected at least {}",
                              responses.is_array() ? responses.size() : 1, k_),
                  "raise the task's repeats");
    }
    Json first = Json::array();
    for (int64_t i = 0; i < k_; ++i) first.push_back(responses[static_cast<size_t>(i)]);
    return first;
  }

 private:
  int64_t k_;
};

// The most frequent response; among equally frequent ones, the first.
class MajorityVote : public Filter {
 public:
  Json Apply(const Json& responses, const PreparedDocument&, Fallbacks*) const override {
    std::vector<std::pair<Json, int>> counts;
    std::map<std::string, size_t> index;
    for (Json& response : Iterate(responses)) {
      const auto [found, is_new] = index.try_emplace(ToLine(response), counts.size());
      if (is_new) counts.emplace_back(std::move(response), 0);
      ++counts[found->second].second;
    }
    if (counts.empty()) throw AnswerError("no text", "majority_vote: there is no response");
    const auto best =
        std::max_element(counts.begin(), counts.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    return Json::array({best->first});
  }
};

std::unique_ptr<Filter> MakeMap(const Json& kwargs) {
  const Json mapping = FieldOr<Json>(kwargs, "mapping_dict", Json::object(), "map");
  if (!mapping.is_object()) ThrowField(kwargs, "mapping_dict", "an object", "map");
  const Json fallback = FieldOr<Json>(kwargs, "default_value", Json(), "map");
  return Each([mapping, fallback](const Json& response) {
    if (!response.is_string()) return fallback;
    const auto found = mapping.find(response.get_ref<const std::string&>());
    return found == mapping.end() ? fallback : *found;
  });
}

// evald's own: the last "\boxed{...}", with its box, by which math_verify finds it.
std::unique_ptr<Filter> MakeLastBoxed(const Json& kwargs) {
  const auto fallback = FieldOr<std::string>(kwargs, "fallback", kNoAnswer, "last_boxed");
  return std::make_unique<EachFilter>(
      [fallback](const Json& response) {
        const auto boxed = LastBoxed(TextOf(response, "last_boxed"), BoxForms::kBraces);
        return Json(boxed.value_or(fallback));
      },
      fallback);
}

std::unique_ptr<Filter> MakeTakeFirstK(const Json& kwargs) {
  const auto k = Field<int64_t>(kwargs, "k", "take_first_k");
  if (k < 1) ThrowField(kwargs, "k", "at least 1", "take_first_k");
  return std::make_unique<TakeFirstK>(k);
}

std::vector<FilterMaker> SimpleMakers() {
  return {
      {"take_first",
       {},
       [](const Json&) -> std::unique_ptr<Filter> { return std::make_unique<TakeFirst>(); }},
      {"take_first_k", {"k"}, MakeTakeFirstK},
      {"majority_vote",
       {},
       [](const Json&) -> std::unique_ptr<Filter> { return std::make_unique<MajorityVote>(); }},
      {"last_boxed", {"fallback"}, MakeLastBoxed},
      {"remove_whitespace",
       {},
       [](const Json&) {
         return Each(
             [](const Json& r) { return Json(python::Strip(TextOf(r, "remove_whitespace"))); });
       }},
      {"lowercase",
       {},
       [](const Json&) {
         return Each([](const Json& r) { return Json(python::Lower(TextOf(r, "lowercase"))); });
       }},
      {"uppercase",
       {},
       [](const Json&) {
         return Each([](const Json& r) { return Json(python::Upper(TextOf(r, "uppercase"))); });
       }},
      {"map", {"mapping_dict", "default_value"}, MakeMap},
  };
}

const std::vector<FilterMaker>& AllMakers() {
  static const std::vector<FilterMaker> makers = [] {
    std::vector<FilterMaker> all = SimpleMakers();
    for (const auto& more : {RegexFilterMakers(), CodeFilterMakers(), BbhFilterMakers()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  return makers;
}

void CheckArguments(const FilterMaker& maker, const Json& kwargs) {
  for (const auto& [key, value] : kwargs.items()) {
    if (std::find(maker.arguments.begin(), maker.arguments.end(), key) == maker.arguments.end()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("the filter '{}' has no argument '{}'{}", maker.name, key,
                              Suggestion(key, maker.arguments)));
    }
  }
}

}  // namespace

Json EachFilter::Apply(const Json& responses, const PreparedDocument&, Fallbacks* fallbacks) const {
  FilteredList mapped;
  for (const Json& response : Iterate(responses)) {
    Json value = fallback_;
    TakesAnswer(fallbacks, [&] { value = map_(response); });
    mapped.Add(std::move(value));
  }
  return mapped.Take();
}

uint64_t BytesOf(const Json& value) {
  uint64_t bytes = sizeof(Json);
  if (value.is_string()) bytes += value.get_ref<const std::string&>().size();
  if (value.is_array()) {
    for (const Json& item : value) bytes += BytesOf(item);
  }
  if (value.is_object()) {
    for (const auto& item : value.items()) bytes += item.key().size() + BytesOf(item.value());
  }
  return bytes;
}

void FilteredList::Add(Json value) {
  bytes_ += BytesOf(value);
  if (bytes_ > kDocumentBytesMax) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("the filtered responses take more than {}", HumanBytes(kDocumentBytesMax)),
        "ask for fewer repeats or shorter answers, or shorten the filter's own texts");
  }
  list_.push_back(std::move(value));
}

std::vector<Json> Iterate(const Json& value) {
  std::vector<Json> items;
  if (value.is_array()) {
    items.assign(value.begin(), value.end());
    return items;
  }
  if (value.is_null()) throw AnswerError("no text", "found null, expected a list of responses");
  if (!value.is_string()) {
    throw Error(ErrorKind::kInput,
                fmt::format("found {}, expected a list of responses", ToLine(value)));
  }
  const std::u32string characters = python::Decode(value.get_ref<const std::string&>());
  if (characters.size() > kIteratedMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("found a text of {} characters, expected a list of responses",
                            characters.size()),
                "an earlier step gives one text in place of a list, which is taken apart into its "
                "characters; leave that step out");
  }
  for (const char32_t c : characters) {
    std::string character;
    python::AppendUtf8(c, &character);
    items.emplace_back(std::move(character));
  }
  return items;
}

const std::string& TextOf(const Json& response, const char* filter) {
  if (response.is_string()) return response.get_ref<const std::string&>();
  if (response.is_null())
    throw AnswerError("no text", fmt::format("{}: found null, expected text", filter));
  throw Error(ErrorKind::kInput,
              fmt::format("{}: found {}, expected text", filter, Shortened(ToLine(response), 200)));
}

std::vector<std::string> FilterNames() {
  std::vector<std::string> names;
  for (const FilterMaker& maker : AllMakers()) names.emplace_back(maker.name);
  return names;
}

std::unique_ptr<Filter> MakeFilter(const FilterStep& step) {
  for (const FilterMaker& maker : AllMakers()) {
    if (step.function != maker.name) continue;
    CheckArguments(maker, step.kwargs);
    return maker.make(step.kwargs);
  }
  throw Error(ErrorKind::kInput,
              fmt::format("the filter '{}' is not known{}", step.function,
                          Suggestion(step.function, FilterNames())),
              "served are " + Join(FilterNames(), ", "));
}

FilterChain::FilterChain(const FilterPipeline& pipeline, bool runs_own, TaskCode* code)
    : name_(pipeline.name), code_(code) {
  for (const FilterStep& step : pipeline.steps) {
    try {
      std::optional<OwnFilter> own = OwnFilterOf(step);
      if (own && !runs_own) RefuseOwnFilter(*own, FilterNames());
      steps_.push_back({step.function, own ? nullptr : MakeFilter(step), std::move(own)});
    } catch (Error& e) {
      e.AddContext(fmt::format("filter pipeline '{}'", name_));
      throw;
    }
  }
}

Json FilterChain::Apply(Json responses, const PreparedDocument& document, Fallbacks* fallbacks,
                        Json* own_steps) const {
  bool lazy = false;  // of the step before
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    try {
      if (step.own) {
        OwnStep done = step.own->Apply(code_, std::move(responses), lazy, document);
        lazy = done.leaves_lazy;
        responses = done.left;
        if (own_steps->is_null()) *own_steps = Json::array();
        own_steps->push_back(ToJson(std::move(done), i));
      } else {
        responses = step.filter->Apply(responses, document, fallbacks);
        lazy = LeavesIterator(step.function);
      }
    } catch (Error& e) {
      e.AddContext(fmt::format("filter pipeline '{}', step {} ({})", name_, i + 1, step.function));
      throw;
    }
  }
  return responses;
}

}  // namespace evald
