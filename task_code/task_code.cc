#include "task_code/task_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/box.h"
#include "metrics/sandbox/wire.h"
#include "task_code/runtime_files.h"

namespace evald {
namespace {

constexpr const char* kAnswerName = "an answer of the task's code";
constexpr const char* kAllowedNames[] = {"refuse", "allow", "unsafe"};
constexpr const char* kTasksPackage = "lm_eval.tasks.";
constexpr size_t kAnswerBytesMax = size_t{256} << 20;
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

sandbox::BoxOptions BoxOf(const TaskCodeOptions& options) {
  sandbox::BoxOptions box;
  box.unsafe = options.allowed == TaskCodeOptions::Allowed::kUnsafe;
  box.python = options.python;
  box.memory_bytes = options.memory_bytes;
  box.script = TextOf("start");
  box.arguments = {Modules().dump(), std::to_string(sandbox::kControlFd)};
  return box;
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

[[noreturn]] void ThrowFault(const std::string& function, const Json& fault,
                             const std::string& python) {
  const auto type = Field<std::string>(fault, "type", kAnswerName);
  const auto message = Field<std::string>(fault, "message", kAnswerName);
  const std::string place = PlaceOfFault(fault);
  std::string remedy = "mend the function";
  if (fault.contains("missing")) {
    const auto package = PrintableLine(Field<std::string>(fault, "missing", kAnswerName));
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
  options.allowed = AllowedTaskCode(allowed).value_or(options.allowed);
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

struct TaskCode::Connection {
  explicit Connection(const TaskCodeOptions& options)
      : python(options.python), box(BoxOf(options)) {}

  std::string python;
  sandbox::Box box;
};

TaskCode::TaskCode(const TaskCodeOptions& options)
    : connection_(std::make_unique<Connection>(options)) {}

TaskCode::~TaskCode() = default;

/// The answer to a call, after the wishes for files before it.
Json TaskCode::Await() {
  for (;;) {
    const std::string line = connection_->box.Receive(kAnswerBytesMax);
    Json answer = ParseJson(line, kAnswerName);
    if (!answer.is_object())
      throw Error(ErrorKind::kInput, fmt::format("{} is no object", kAnswerName));
    if (!answer.contains("want")) return answer;
    const auto path = Field<std::string>(answer, "want", kAnswerName);
    connection_->box.Send(ToLine(AnswerOf(File(path))));
  }
}

/// Logs what the function has printed.
void TaskCode::Note(const std::string& function) {
  const std::string said = connection_->box.TakeSaid();
  for (const std::string& line : Split(Trim(said), '\n')) {
    if (!Trim(line).empty()) log::Info("{}: {}", function, PrintableLine(line));
  }
}

Json TaskCode::Call(const std::string& function, Json call) {
  try {
    connection_->box.Send(ToLine(call));
    const Json answer = Await();
    Note(function);
    if (answer.contains("ok")) return Field<Json>(answer, "ok", kAnswerName);
    ThrowFault(function, Field<Json>(answer, "error", kAnswerName), connection_->python);
  } catch (Error& error) {
    if (!error.message().starts_with("the function"))
      error.AddContext(fmt::format("the function '{}'", function));
    throw;
  }
}

void TaskCode::AddRoots(const std::vector<std::string>& folders) {
  Call("roots", {{"call", "roots"}, {"folders", folders}});
  roots_.insert(roots_.end(), folders.begin(), folders.end());
}

void TaskCode::Load(const std::string& function, uint64_t seed) {
  const Json place = PlaceOf(function);
  const Json answer =
      Call(function, {{"call", "load"}, {"folder", place[0]}, {"name", place[1]}, {"seed", seed}});
  if (Field<bool>(answer, "callable", kAnswerName)) return;
  throw Error(ErrorKind::kInput, fmt::format("'{}' is no function", function),
              "name a function of the module after !function");
}

Json TaskCode::Used(const std::vector<std::string>& functions) {
  Json places = Json::array();
  for (const std::string& function : functions) places.push_back(PlaceOf(function));
  const Json answer = Call("used", {{"call", "used"}, {"functions", std::move(places)}});
  return {{"python", Field<std::string>(answer, "python", kAnswerName)},
          {"packages", Field<Json>(answer, "packages", kAnswerName)},
          {"files", Field<Json>(answer, "files", kAnswerName)}};
}

CodeTable TaskCode::TableFrom(const std::string& function, const Json& answer) const {
  CodeTable table;
  table.id = Field<int64_t>(answer, "table", kAnswerName);
  table.count = Field<int64_t>(answer, "count", kAnswerName);
  table.columns = Field<std::vector<std::string>>(answer, "columns", kAnswerName);
  if (table.count > 0) return table;
  throw Error(ErrorKind::kInput, fmt::format("the function '{}' gives no documents", function),
              "see whether the task's data is what the function expects");
}

CodeTable TaskCode::Process(const std::string& function, const std::vector<Json>& rows,
                            const std::vector<std::string>& columns, uint64_t seed) {
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
    id = Call(function, std::move(call)).at("table");
  } while (next < rows.size());
  if (function.empty())
    return TableFrom(function, Call("rows", {{"call", "documents"}, {"table", id}}));
  return TableFrom(function, Call(function, {{"call", "process_docs"},
                                             {"function", PlaceOf(function)},
                                             {"table", id},
                                             {"seed", seed}}));
}

CodeTable TaskCode::Samples(const std::string& function, uint64_t seed) {
  return TableFrom(
      function,
      Call(function, {{"call", "samples"}, {"function", PlaceOf(function)}, {"seed", seed}}));
}

/// Packed values: `count` at most, and at least one.
std::vector<Json> TaskCode::Values(const std::string& function, Json call, int64_t count) {
  const Json answer = Call(function, std::move(call));
  std::vector<Json> values;
  for (const Json& packed : Field<Json>(answer, "values", kAnswerName)) {
    if (!packed.is_array() || packed.empty()) break;
    values.push_back(packed);
  }
  if (!values.empty() && static_cast<int64_t>(values.size()) <= count) return values;
  throw Error(ErrorKind::kInput, fmt::format("the function '{}': found {} values, expected 1 to {}",
                                             function, values.size(), count));
}

std::vector<Json> TaskCode::Read(const CodeTable& table, int64_t first, int64_t count) {
  return Values("read", {{"call", "read"}, {"table", table.id}, {"first", first}, {"count", count}},
                count);
}

std::vector<Json> TaskCode::Apply(const std::string& function, const CodeTable& table,
                                  int64_t first, int64_t count) {
  std::vector<Json> values = Values(function,
                                    {{"call", "apply"},
                                     {"function", PlaceOf(function)},
                                     {"table", table.id},
                                     {"first", first},
                                     {"count", count}},
                                    count);
  for (Json& value : values) value = Json(std::move(value[0]));
  return values;
}

Json TaskCode::ProcessResults(const std::string& function, const Json& document, const Json& python,
                              const std::vector<Json>& results, Results form) {
  static constexpr const char* kForms[] = {"texts", "pairs", "numbers"};
  Json packed = Json::array({document});
  if (!python.is_null()) packed.push_back(python);
  Json metrics = Values(function,
                        {{"call", "process_results"},
                         {"function", PlaceOf(function)},
                         {"documents", Json::array({std::move(packed)})},
                         {"results", Json::array({Json(results)})},
                         {"form", kForms[static_cast<size_t>(form)]}},
                        1)[0][0];
  if (metrics.is_object()) return metrics;
  throw Error(ErrorKind::kInput,
              fmt::format("the function '{}' gives {}, expected a mapping of metrics", function,
                          Shortened(metrics.dump(-1, ' ', false, Json::error_handler_t::replace),
                                    kMessageBytesMax)));
}

}  // namespace evald
