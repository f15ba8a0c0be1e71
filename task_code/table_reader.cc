#include "task_code/table_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/json_walk.h"
#include "base/jsonl.h"
#include "base/sha256.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr const char* kTableAnswer = "an answer of the process that reads tables";
constexpr size_t kTableAnswerBytesMax = size_t{256} << 20;
constexpr size_t kTablePieceBytes = size_t{1} << 20;
constexpr size_t kTableMessageBytesMax = 1000;
constexpr const char* kTableWho = "the process that reads the file";
constexpr const char* kTableRemedy =
    "compare the file with its source; 'limits.memory' sets how much memory the process may take";

[[noreturn]] void ThrowTableFault(const std::string& name, const Json& fault,
                                  const std::string& python) {
  const auto package = FieldOr<std::string>(fault, "missing", "", kTableAnswer);
  if (package == "pyarrow") {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: reading this file takes the Python package pyarrow, which {} does "
                    "not have",
                    name, python),
        fmt::format("install the package ({} -m pip install pyarrow), or name a Python that "
                    "has it with 'task_python'",
                    python));
  }
  const auto type = Field<std::string>(fault, "type", kTableAnswer);
  const auto message = Field<std::string>(fault, "message", kTableAnswer);
  throw Error(ErrorKind::kInput,
              fmt::format("{}: cannot be read as a table: {}{}{}", name, PrintableLine(type),
                          message.empty() ? "" : ": ",
                          PrintableLine(Shortened(message, kTableMessageBytesMax))),
              type == "MemoryError" ? kTableRemedy : "compare the file with its source");
}

uint64_t BytesOfFile(const UniqueFd& fd, const std::string& name) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) ThrowErrno(name, "fstat", errno);
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

TableReader::TableReader(const TaskCodeOptions& options, sandbox::BoxMaker* boxes)
    : python_(options.python),
      box_(boxes != nullptr ? boxes->Make() : sandbox::StartBoxProcess(TaskCodeBox(options)),
           {kTableWho, kTableRemedy}) {}

Json TableReader::Answer(const std::string& name) {
  const Json answer = ParseJson(box_.Receive(kTableAnswerBytesMax, 0), kTableAnswer);
  const bool ok = answer.is_object() && answer.contains("ok") && answer["ok"].is_object();
  if (!ok) ThrowTableFault(name, Field<Json>(answer, "error", kTableAnswer), python_);
  return answer["ok"];
}

CodeTable TableReader::Open(const UniqueFd& fd, const std::string& name, uint64_t bytes_max,
                            std::string* hash) {
  const uint64_t bytes = BytesOfFile(fd, name);
  if (bytes > bytes_max) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the file has {}, expected at most {}", name, HumanBytes(bytes),
                            HumanBytes(bytes_max)),
                "'limits.file' sets that");
  }
  try {
    box_.Send(ToLine({{"call", "open_table"}, {"bytes", bytes}}), 0);
    Sha256Hasher hasher;
    for (uint64_t at = 0; at < bytes;) {
      const std::string piece = ReadAt(fd, at, std::min<uint64_t>(kTablePieceBytes, bytes - at));
      if (piece.empty())
        throw Error(ErrorKind::kInput, name + ": the file became shorter while it was read");
      hasher.Update(piece);
      box_.SendBytes(piece, 0);
      at += piece.size();
    }
    *hash = hasher.Hex();
    const Json opened = Answer(name);
    CodeTable table;
    table.id = Field<int64_t>(opened, "table", kTableAnswer);
    table.count = Field<int64_t>(opened, "count", kTableAnswer);
    table.columns = Field<std::vector<std::string>>(opened, "columns", kTableAnswer);
    return table;
  } catch (Error& error) {
    if (!error.message().starts_with(name)) error.AddContext(name);
    throw;
  }
}

std::vector<Json> TableReader::Read(const std::string& name, const CodeTable& table, int64_t first,
                                    int64_t count) {
  try {
    box_.Send(ToLine({{"call", "read"}, {"table", table.id}, {"first", first}, {"count", count}}),
              0);
    const Json values = Field<Json>(Answer(name), "values", kTableAnswer);
    std::vector<Json> rows;
    for (const Json& row : values) {
      if (!row.is_array() || row.empty() || !row[0].is_object()) break;
      rows.push_back(row);
    }
    if (!rows.empty() && rows.size() == values.size() &&
        rows.size() <= static_cast<size_t>(count)) {
      return rows;
    }
    throw Error(ErrorKind::kInput,
                fmt::format("{} gives no rows from number {} on", kTableWho, first));
  } catch (Error& error) {
    if (!error.message().starts_with(name)) error.AddContext(name);
    throw;
  }
}

bool IsTableFile(const std::string& name) {
  return name.ends_with(".parquet") || name.ends_with(".arrow");
}

}  // namespace evald
