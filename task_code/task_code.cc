#include "task_code/task_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/clock.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/box.h"
#include "metrics/sandbox/wire.h"
#include "task_code/lent_files.h"
#include "task_code/runtime_files.h"

namespace evald {
namespace {

constexpr const char* kAnswerName = "an answer of the task's code";
constexpr const char* kAllowedNames[] = {"refuse", "allow", "unsafe"};
constexpr const char* kTasksPackage = "lm_eval.tasks.";
constexpr size_t kAnswerBytesMax = size_t{256} << 20;
constexpr uint64_t kHandedBytesMax = uint64_t{64} << 20;
constexpr uint64_t kLentBytesMax = uint64_t{256} << 20;  // of a tokenizer and data
constexpr size_t kAbsentMax = 10'000;
constexpr size_t kRowsBytes = size_t{1} << 20;  // of one message
constexpr size_t kMessageBytesMax = 2000;

std::string TextOf(const std::string& name) {
  const auto* end = task_code::kRuntimeFiles + task_code::kRuntimeFileCount;
  return std::find_if(task_code::kRuntimeFiles, end,
                      [&](const auto& file) { return name == file.name; })
      ->text;
}

Json Modules() {
  Json modules = Json::object();
  for (size_t i = 0; i < task_code::kRuntimeFileCount; ++i) {
    const task_code::RuntimeFile& file = task_code::kRuntimeFiles[i];
    if (std::string_view(file.name) != "start") modules[file.name] = file.text;
  }
  return modules;
}

/// A function's place: [folder, "utils.f"]. A folder of "" is that of lm_eval.tasks.
Json PlaceOf(const std::string& function) {
  const size_t slash = function.rfind('/');
  if (function.starts_with('/')) {
    return Json::array({function.substr(0, slash), function.substr(slash + 1)});
  }
  std::string name = function;
  std::replace(name.begin(), name.end(), '/', '.');
  return Json::array({"", kTasksPackage + name});
}

Json AnswerOf(const WantedFile& file) {
  if (file.kind == WantedFile::Kind::kFile) return {{"file", ToLatin1(file.content)}};
  if (file.kind == WantedFile::Kind::kFolder) return {{"folder", true}};
  return Json::object();
}

/// "utils.py:12, document 3", as far as it is known.
std::string PlaceOfFault(const Json& fault) {
  const auto at = FieldOr<std::string>(fault, "at", "", kAnswerName);
  std::vector<std::string> parts;
  if (!at.empty()) parts.push_back(at);
  if (fault.contains("document"))
    parts.push_back(fmt::format("document {}", Field<int64_t>(fault, "document", kAnswerName)));
  return Join(parts, ", ");
}

bool IsPackageName(const std::string& name) {
  constexpr size_t kBytesMax = 100;
  return !name.empty() && name.size() <= kBytesMax &&
         name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.") ==
             std::string::npos;
}

/// Names the function in errors that do not.
template <typename Work>
auto InFunction(const std::string& function, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.message().starts_with("the function '")) throw;
    throw Error(error.kind(), fmt::format("the function '{}': {}", function, error.message()),
                error.remedy().empty() ? "mend the function" : error.remedy());
  }
}

[[noreturn]] void ThrowFault(const std::string& function, const Json& fault,
                             const std::string& python) {
  const auto type = Field<std::string>(fault, "type", kAnswerName);
  const auto message = Field<std::string>(fault, "message", kAnswerName);
  const std::string place = PlaceOfFault(fault);
  std::string remedy = "mend the function";
  const auto package = FieldOr<std::string>(fault, "missing", "", kAnswerName);
  if (IsPackageName(package)) {
    remedy = fmt::format(
        "install the package for {} ({} -m pip install {}), or name a Python that has it with "
        "'task_python'",
        python, python, package);
  } else if (type == "MemoryError") {
    remedy = "'limits.memory' sets how much memory task code may take";
  }
  throw Error(
      ErrorKind::kInput,
      fmt::format("the function '{}': {}{}{}{}", function, PrintableLine(type),
                  message.empty() ? "" : ": ", PrintableLine(Shortened(message, kMessageBytesMax)),
                  place.empty() ? "" : fmt::format(" ({})", PrintableLine(place))),
      remedy);
}

}  // namespace

const char* ToString(TaskCodeOptions::Allowed allowed) {
  return kAllowedNames[static_cast<size_t>(allowed)];
}

std::optional<TaskCodeOptions::Allowed> AllowedTaskCode(std::string_view text) {
  for (size_t i = 0; i < std::size(kAllowedNames); ++i) {
    if (text == kAllowedNames[i]) return static_cast<TaskCodeOptions::Allowed>(i);
  }
  return std::nullopt;
}

Json ToJson(const TaskCodeOptions& options) {
  return {{"allowed", ToString(options.allowed)},
          {"python", options.python},
          {"memory", options.memory_bytes}};
}

TaskCodeOptions TaskCodeFromJson(const Json& json, const std::string& where) {
  TaskCodeOptions options;
  const auto allowed = FieldOr<std::string>(json, "allowed", ToString(options.allowed), where);
  const auto known = AllowedTaskCode(allowed);
  if (!known) ThrowField(json, "allowed", "refuse, allow or unsafe", where);
  options.allowed = *known;
  options.python = FieldOr<std::string>(json, "python", options.python, where);
  options.memory_bytes = FieldOr<uint64_t>(json, "memory", options.memory_bytes, where);
  return options;
}

std::string ToLatin1(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xc0 | (byte >> 6));
      text += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return text;
}

std::string FromLatin1(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80 || i + 1 == text.size()) {
      bytes += text[i];
    } else {
      bytes += static_cast<char>(((byte & 0x03) << 6) | (text[++i] & 0x3f));
    }
  }
  return bytes;
}

Json PackedDocument(const Json& document, const Json& python) {
  Json packed = Json::array({document});
  if (!python.is_null()) packed.push_back(python);
  return packed;
}

struct TaskCode::Connection {
  Connection(const TaskCodeOptions& options, std::unique_ptr<sandbox::BoxProcess> process)
      : allowed(options.allowed),
        python(options.python),
        memory_bytes(options.memory_bytes),
        call_seconds(options.call_seconds),
        box(std::move(process)) {}

  TaskCodeOptions::Allowed allowed;
  std::string python;
  uint64_t memory_bytes;
  double call_seconds;
  sandbox::Box box;
};

sandbox::BoxOptions TaskCodeBox(const TaskCodeOptions& options) {
  sandbox::BoxOptions box;
  box.unsafe = options.allowed == TaskCodeOptions::Allowed::kUnsafe;
  box.python = options.python;
  box.memory_bytes = options.memory_bytes;
  box.script = TextOf("start");
  box.arguments = {Modules().dump(), std::to_string(sandbox::kControlFd),
                   box.unsafe ? "unsafe" : "boxed"};
  return box;
}

std::unique_ptr<sandbox::BoxMaker> MakeTaskCodeBoxes(const TaskCodeOptions& options, bool at_once) {
  return std::make_unique<sandbox::BoxMaker>(TaskCodeBox(options), at_once);
}

TaskCode::TaskCode(const TaskCodeOptions& options)
    : connection_(
          std::make_unique<Connection>(options, sandbox::StartBoxProcess(TaskCodeBox(options)))) {}

TaskCode::TaskCode(const TaskCodeOptions& options, sandbox::BoxMaker* boxes)
    : connection_(std::make_unique<Connection>(options, boxes->Make())) {}

TaskCode::~TaskCode() = default;

/// The answer to a call, after the wishes for files before it.
Json TaskCode::Await(int64_t deadline_us) {
  for (;;) {
    const std::string line = connection_->box.Receive(kAnswerBytesMax, deadline_us);
    Json answer = ParseJson(line, kAnswerName);
    if (!answer.is_object())
      throw Error(ErrorKind::kInput, fmt::format("{} is no object", kAnswerName));
    if (!answer.contains("want")) return answer;
    const WantedFile file = HandOver(Field<std::string>(answer, "want", kAnswerName));
    connection_->box.Send(ToLine(AnswerOf(file)), deadline_us);
  }
}

/// The file that the process wants. The first answer for a path holds.
WantedFile TaskCode::HandOver(const std::string& path) {
  const auto before = handed_.find(path);
  if (before != handed_.end()) return {WantedFile::Kind::kFile, before->second};
  if (path.find('\0') != std::string::npos) return {};
  WantedFile file = File(path);
  if (file.kind != WantedFile::Kind::kFile) {
    absent_[path] = file.kind == WantedFile::Kind::kFolder;
    if (absent_.size() <= kAbsentMax) return file;
    throw Error(
        ErrorKind::kInput,
        fmt::format("the task's code looks for more than {} files that are not there", kAbsentMax));
  }
  uint64_t& bytes = IsLentFile(path) ? lent_bytes_ : handed_bytes_;
  bytes += file.content.size();
  const uint64_t most = IsLentFile(path) ? kLentBytesMax : kHandedBytesMax;
  if (bytes > most) {
    throw Error(ErrorKind::kInput,
                fmt::format("the task's code reads more than {} of files", HumanBytes(most)),
                "keep large files among the task's data");
  }
  handed_[path] = file.content;
  return file;
}

/// Logs what the function has printed.
void TaskCode::Note(const std::string& function) {
  const std::string said = connection_->box.TakeSaid();
  for (const std::string& line : Split(Trim(said), '\n')) {
    if (!Trim(line).empty()) log::Info("{}: {}", function, PrintableLine(line));
  }
}

Json TaskCode::Call(const std::string& function, Json call) {
  const auto limit_us = static_cast<int64_t>(connection_->call_seconds * 1e6);
  const int64_t deadline_us = limit_us > 0 ? MonotonicMicros() + limit_us : 0;
  return InFunction(function, [&] {
    connection_->box.Send(ToLine(call), deadline_us);
    const Json answer = Await(deadline_us);
    Note(function);
    if (!answer.contains("ok"))
      ThrowFault(function, Field<Json>(answer, "error", kAnswerName), connection_->python);
    Json given = Field<Json>(answer, "ok", kAnswerName);
    if (!given.is_object())
      throw Error(ErrorKind::kInput, fmt::format("{}: 'ok' is no object", kAnswerName));
    return given;
  });
}

void TaskCode::AddRoots(const std::vector<std::string>& folders) {
  Call("roots", {{"call", "roots"}, {"folders", folders}});
  roots_.insert(roots_.end(), folders.begin(), folders.end());
}

void TaskCode::StopWhen(std::function<bool()> stopped) {
  connection_->box.StopWhen(std::move(stopped));
}

TaskCode::Loaded TaskCode::Load(const std::string& function, uint64_t seed) {
  const Json place = PlaceOf(function);
  const Json answer =
      Call(function, {{"call", "load"}, {"folder", place[0]}, {"name", place[1]}, {"seed", seed}});
  if (FieldOr<bool>(answer, "callable", false, kAnswerName)) {
    return {.aggregation = FieldOr<std::string>(answer, "aggregation", "", kAnswerName),
            .name = FieldOr<std::string>(answer, "name", "", kAnswerName)};
  }
  throw Error(ErrorKind::kInput, fmt::format("'{}' is no function", function),
              "name a function of the module after !function");
}

Json TaskCode::Used() const {
  Json used = connection_->box.Installed();
  used["files"] = Json::object();
  for (const auto& [path, content] : handed_) used["files"][path] = Sha256Hex(content);
  used["roots"] = roots_;
  // A function may notice both, and act on it.
  used["allowed"] = ToString(connection_->allowed);
  used["memory"] = connection_->memory_bytes;
  used["absent"] = Json::object();
  for (const auto& [path, is_folder] : absent_) used["absent"][path] = is_folder;
  return used;
}

CodeTable TaskCode::TableFrom(const std::string& function, const Json& answer) const {
  return InFunction(function, [&] {
    CodeTable table;
    table.id = Field<int64_t>(answer, "table", kAnswerName);
    table.count = Field<int64_t>(answer, "count", kAnswerName);
    table.columns = Field<std::vector<std::string>>(answer, "columns", kAnswerName);
    if (table.count > 0) return table;
    throw Error(ErrorKind::kInput, fmt::format("the function '{}' gives no documents", function),
                "see whether the task's data is what the function expects");
  });
}

CodeTable TaskCode::Process(const std::string& function, const std::vector<Json>& rows,
                            const std::vector<std::string>& columns) {
  Json id;
  size_t next = 0;
  do {
    Json part = Json::array();
    for (size_t bytes = 0; next < rows.size() && bytes < kRowsBytes; ++next) {
      part.push_back(rows[next]);
      bytes += rows[next].dump(-1, ' ', false, Json::error_handler_t::replace).size();
    }
    Json call = {{"call", "rows"}, {"rows", std::move(part)}, {"columns", columns}};
    if (!id.is_null()) call["table"] = id;
    id = Field<int64_t>(Call(function, std::move(call)), "table", kAnswerName);
  } while (next < rows.size());
  if (function.empty())
    return TableFrom(function, Call("rows", {{"call", "documents"}, {"table", id}}));
  return TableFrom(
      function,
      Call(function, {{"call", "process_docs"}, {"function", PlaceOf(function)}, {"table", id}}));
}

void TaskCode::Fetch(const std::vector<std::string>& paths) {
  Call("fetch", {{"call", "fetch"}, {"paths", paths}});
}

std::map<std::string, CodeTable> TaskCode::CustomDataset(const std::string& function,
                                                         const Json& arguments) {
  const Json answer = Call(function, {{"call", "custom_dataset"},
                                      {"function", PlaceOf(function)},
                                      {"arguments", arguments},
                                      {"tokenizer", kLentTokenizer},
                                      {"data", kLentData}});
  const Json splits =
      InFunction(function, [&] { return Field<Json>(answer, "splits", kAnswerName); });
  std::map<std::string, CodeTable> made;
  if (splits.is_object()) {
    for (const auto& [split, table] : splits.items()) made[split] = TableFrom(function, table);
  }
  if (!made.empty()) return made;
  throw Error(ErrorKind::kInput, fmt::format("the function '{}' makes no split", function),
              "it gives a mapping of splits to their documents");
}

CodeTable TaskCode::Samples(const std::string& function) {
  return TableFrom(function,
                   Call(function, {{"call", "samples"}, {"function", PlaceOf(function)}}));
}

/// Packed values: `count` at most, and at least one.
std::vector<Json> TaskCode::Values(const std::string& function, Json call, int64_t count) {
  const Json answer = Call(function, std::move(call));
  std::vector<Json> values;
  for (const Json& packed :
       InFunction(function, [&] { return Field<Json>(answer, "values", kAnswerName); })) {
    if (!packed.is_array() || packed.empty()) break;
    values.push_back(packed);
  }
  if (!values.empty() && static_cast<int64_t>(values.size()) <= count) return values;
  throw Error(ErrorKind::kInput, fmt::format("the function '{}': found {} values, expected 1 to {}",
                                             function, values.size(), count));
}

std::vector<Json> TaskCode::Read(const std::string& function, const CodeTable& table, int64_t first,
                                 int64_t count) {
  return Values(function,
                {{"call", "read"}, {"table", table.id}, {"first", first}, {"count", count}}, count);
}

std::vector<Json> TaskCode::Apply(const std::string& function, const CodeTable& table,
                                  int64_t first, int64_t count, bool tuples_as_text) {
  std::vector<Json> values = Values(function,
                                    {{"call", "apply"},
                                     {"function", PlaceOf(function)},
                                     {"table", table.id},
                                     {"first", first},
                                     {"count", count},
                                     {"tuples_as_text", tuples_as_text}},
                                    count);
  for (Json& value : values) value = Json(std::move(value[0]));
  return values;
}

TaskCode::Metrics TaskCode::ProcessResults(const std::string& function, const Json& document,
                                           const Json& python, const std::vector<Json>& results,
                                           Results form, const std::vector<std::string>& keep) {
  static constexpr const char* kForms[] = {"texts", "pairs", "numbers"};
  Json given = Values(function,
                      {{"call", "process_results"},
                       {"function", PlaceOf(function)},
                       {"documents", Json::array({PackedDocument(document, python)})},
                       {"results", Json::array({Json(results)})},
                       {"form", kForms[static_cast<size_t>(form)]},
                       {"keep", keep}},
                      1)[0];
  if (!given[0].is_object()) {
    throw Error(ErrorKind::kInput,
                fmt::format("the function '{}' gives {}, expected a mapping of metrics", function,
                            Shortened(given[0].dump(-1, ' ', false, Json::error_handler_t::replace),
                                      kMessageBytesMax)));
  }
  Metrics metrics;
  metrics.values = std::move(given[0]);
  if (given.size() > 1 && given[1].is_object()) metrics.python = std::move(given[1]);
  return metrics;
}

TaskCode::Filtered TaskCode::Filter(const std::string& function, const FilterStep& step,
                                    const Json& responses, const Json& document,
                                    const Json& python) {
  Json answer = Call(function, {{"call", "filter"},
                                {"function", PlaceOf(function)},
                                {"custom", step.custom},
                                {"settings", step.settings},
                                {"responses", responses},
                                {"document", PackedDocument(document, python)},
                                {"lazy", step.lazy}});
  return InFunction(function, [&]() -> Filtered {
    return {.responses = Field<Json>(answer, "left", kAnswerName),
            .lazy = Field<bool>(answer, "lazy", kAnswerName)};
  });
}

Json TaskCode::Metric(const std::string& function, const MetricStep& step, const Json& gold,
                      const Json& result) {
  static constexpr const char* kTakes[] = {"function", "number", "any"};
  const Json answer = Call(function, {{"call", "metric"},
                                      {"function", PlaceOf(function)},
                                      {"name", step.name},
                                      {"gold", gold},
                                      {"result", result},
                                      {"settings", step.settings},
                                      {"several", step.several},
                                      {"takes", kTakes[static_cast<size_t>(step.takes)]}});
  return InFunction(function, [&] {
    Json value = Field<Json>(answer, "value", kAnswerName);
    const bool fine = value.is_array() && (value.size() == 1 || value.size() == 2) &&
                      (value.size() == 1 || value[1].is_string());
    if (!fine) ThrowField(answer, "value", "one or two items", kAnswerName);
    return value;
  });
}

void TaskCode::AddItems(const std::string& function, Json values, Items* items) {
  Json call = {{"call", "items"}, {"values", std::move(values)}};
  if (items->id >= 0) call["items"] = items->id;
  items->id = InFunction(function, [&] {
    return Field<int64_t>(Call(function, std::move(call)), "items", kAnswerName);
  });
}

Json TaskCode::Aggregate(const std::string& function, const Items& items,
                         const std::string& metric) {
  const Json answer = Call(function, {{"call", "aggregate"},
                                      {"function", PlaceOf(function)},
                                      {"items", items.id},
                                      {"metric", metric}});
  return InFunction(function, [&] { return Field<Json>(answer, "value", kAnswerName); });
}

std::optional<TaskCode::FilterDifference> TaskCode::CheckFilter(const std::string& function,
                                                                const FilterStep& step,
                                                                const Items& items, uint64_t seed) {
  const Json answer = Call(function, {{"call", "check_filter"},
                                      {"function", PlaceOf(function)},
                                      {"custom", step.custom},
                                      {"settings", step.settings},
                                      {"items", items.id},
                                      {"lazy", step.lazy},
                                      {"seed", seed}});
  if (answer.empty()) return std::nullopt;
  return InFunction(function, [&]() -> FilterDifference {
    return {.document = Field<int64_t>(answer, "document", kAnswerName),
            .alone = Field<std::string>(answer, "alone", kAnswerName),
            .together = Field<std::string>(answer, "together", kAnswerName)};
  });
}

}  // namespace evald
