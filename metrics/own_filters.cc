#include "metrics/own_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"
#include "metrics/filter_support.h"
#include "metrics/task_codes.h"

namespace evald {
namespace {

constexpr uint64_t kPartBytes = uint64_t{4} << 20;  // of documents that go to the process at once
constexpr std::string_view kFunctionMark = "!function ";

TaskCode::FilterStep StepOf(const OwnFilter& filter, bool lazy) {
  return {.custom = filter.custom, .settings = filter.settings, .lazy = lazy};
}

bool HoldsFunction(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().starts_with(kFunctionMark);
  return value.is_structured() && std::any_of(value.begin(), value.end(), HoldsFunction);
}

TaskCodeOptions ForCheck(TaskCodeOptions options) {
  options.call_seconds = OwnFilterCheck::kSeconds;
  return options;
}

}  // namespace

Json ToJson(OwnStep step, size_t number) {
  return {{"step", number},
          {"given", std::move(step.given)},
          {"lazy", step.lazy},
          {"left", std::move(step.left)}};
}

OwnStep OwnFilter::Apply(TaskCode* code, Json responses, bool lazy,
                         const PreparedDocument& document) const {
  if (code == nullptr)
    throw Error(ErrorKind::kInternal, "no process runs the functions of the task");
  TaskCode::Filtered filtered =
      code->Filter(function, StepOf(*this, lazy), responses, document.doc, document.python);
  if (BytesOf(filtered.responses) > kDocumentBytesMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("the function '{}' leaves responses of more than {}", function,
                            HumanBytes(kDocumentBytesMax)),
                "let the filter leave less of each document");
  }
  return {.given = std::move(responses),
          .lazy = lazy,
          .left = std::move(filtered.responses),
          .leaves_lazy = filtered.lazy};
}

std::optional<OwnFilter> OwnFilterOf(const FilterStep& step) {
  std::string function = OwnFilterFunction(step);
  if (function.empty()) return std::nullopt;
  OwnFilter own{.function = std::move(function), .custom = step.function == "custom"};
  if (own.custom) return own;  // the filter `custom` makes nothing of further settings
  own.settings = step.kwargs;
  RefuseFunctionsIn(own.settings, fmt::format("the filter '{}'", own.function));
  return own;
}

void RefuseOwnFilter(const OwnFilter& filter, const std::vector<std::string>& served) {
  RefuseFunction("", filter.function, "is not known as a filter", served,
                 "let evald run the Python code of task files in a sandbox with 'task_code: "
                 "allow' or --allow-task-code (docs/task-code.md); served are ");
}

bool LeavesIterator(std::string_view filter) {
  static constexpr std::array<std::string_view, 3> kLazy = {"take_first", "take_first_k",
                                                            "majority_vote"};
  return std::find(kLazy.begin(), kLazy.end(), filter) != kLazy.end();
}

void RefuseFunctionsIn(const Json& settings, const std::string& whose) {
  if (!HoldsFunction(settings)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{} has a setting that is a function, expected text, numbers, true, "
                          "false, null, or lists and mappings of these",
                          whose),
              "let the function find the other one by an import");
}

bool HasOwnFilters(const TaskDefinition& task) {
  return UsesTaskCode(task) && !OwnMetricsAndFilters(false, {}, task.filters).empty();
}

// A step of a pipeline.
struct OwnFilterCheck::Place {
  const FilterPipeline& pipeline;
  size_t number;      // of the step
  size_t own_number;  // of it among the pipeline's own steps
  OwnFilter filter;
};

OwnFilterCheck::OwnFilterCheck(const TaskDefinition& task, const PreparedTask& prepared,
                               TaskCodeOptions options, std::function<bool()> stopped)
    : task_(task),
      prepared_(prepared),
      seed_(Field<uint64_t>(prepared.Code(), "seed", "code.json")),
      code_(StartTaskCode(prepared, ForCheck(std::move(options)), ScoringFunctions(task),
                          std::move(stopped))) {}

OwnFilterCheck::~OwnFilterCheck() = default;

void OwnFilterCheck::Run(const std::function<ScoredDocument(int64_t document)>& score) {
  for (const FilterPipeline& pipeline : task_.filters) {
    size_t own_number = 0;
    for (size_t number = 0; number < pipeline.steps.size(); ++number) {
      const std::optional<OwnFilter> own = OwnFilterOf(pipeline.steps[number]);
      if (!own) continue;
      const Place place{pipeline, number, own_number++, *own};
      try {
        RunStep(place, score);
      } catch (Error& e) {
        throw e.AddContext(
            fmt::format("task '{}', filter pipeline '{}', step {}, all documents "
                        "together",
                        task_.name, pipeline.name, number + 1));
      }
    }
  }
}

void OwnFilterCheck::RunStep(const Place& place,
                             const std::function<ScoredDocument(int64_t)>& score) {
  TaskCode::Items items;
  Json waiting = Json::array();
  uint64_t waiting_bytes = 0;
  bool lazy = false;
  const auto send = [&] {
    code_->AddItems(place.filter.function, std::exchange(waiting, Json::array()), &items);
    waiting_bytes = 0;
  };
  for (int64_t doc_id = 0; doc_id < prepared_.document_count(); ++doc_id) {
    const ScoredDocument scored = score(doc_id);
    const auto filter =
        std::find_if(scored.filters.begin(), scored.filters.end(),
                     [&](const FilterScore& one) { return one.filter == place.pipeline.name; });
    const std::string where = fmt::format("the scores of document {}", doc_id);
    if (filter == scored.filters.end() || filter->own_steps.size() <= place.own_number) continue;
    const Json& done = filter->own_steps[place.own_number];
    const PreparedDocument document = prepared_.Document(doc_id);
    lazy = Field<bool>(done, "lazy", where);
    waiting.push_back({{"given", Field<Json>(done, "given", where)},
                       {"document", PackedDocument(document.doc, document.python)},
                       {"left", Field<Json>(done, "left", where)},
                       {"doc_id", doc_id}});
    waiting_bytes += BytesOf(waiting.back());
    if (waiting_bytes >= kPartBytes) send();
  }
  send();
  const auto differs =
      code_->CheckFilter(place.filter.function, StepOf(place.filter, lazy), items, seed_);
  if (!differs) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("the function '{}' makes {} of document {} alone, and {} among all documents; "
                  "evald scores documents one after another, and needs one result",
                  place.filter.function, Shortened(differs->alone, 300), differs->document,
                  Shortened(differs->together, 300)),
      "let the filter look at each document by itself, and draw nothing at random");
}

}  // namespace evald
