#include "prepared/prepared_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/jsonl.h"
#include "base/log.h"
#include "base/parallel.h"
#include "evald/error.h"
#include "prepared/hashes.h"
#include "prepared/index.h"
#include "prepared/tokens_file.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Documents whose tokens are held in memory before they are written.
constexpr int64_t kDocumentsPerThread = 64;

// Takes the first line off `rest`. Every line of these files ends with a newline.
std::string_view TakeLine(std::string_view* rest) {
  const size_t end = std::min(rest->find('\n'), rest->size());
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return line;
}

fs::path TokensPath(const fs::path& directory, const std::string& key) {
  return directory / ("tokens-" + key + ".bin");
}

RequestKind KindOf(const Json& line, const std::string& where) {
  try {
    return RequestKindFromString(Field<std::string>(line, "kind", where));
  } catch (Error& e) {
    e.AddContext(where);
    throw;
  }
}

}  // namespace

struct PreparedTask::State {
  explicit State(fs::path folder)
      : directory(std::move(folder)),
        documents(directory / "documents.jsonl"),
        requests(directory / "requests.jsonl"),
        index(prepared::ReadIndex(directory / "index.bin", documents.size(), requests.size())) {
    const std::string file = (directory / "task.json").string();
    const std::string text = ReadFile(file);
    const prepared::Hashes hashes = prepared::ReadHashes(directory);
    prepared::CheckBytes(hashes, file, text);
    if (hashes.contains("code.json")) {
      code = ReadFile(directory / "code.json");
      prepared::CheckBytes(hashes, directory / "code.json", code);
    }
    prepared::CheckBytes(hashes, directory / "index.bin", ReadFile(directory / "index.bin"));
    prepared::CheckBytes(hashes, directory / "documents.jsonl", documents.view());
    prepared::CheckBytes(hashes, directory / "requests.jsonl", requests.view());
    task = ParseJson(text, file);
    name = Field<std::string>(task, "name", file);
    repeats = FieldOr<int>(task, "repeats", 1, file);
  }

  int64_t document_count() const { return static_cast<int64_t>(index.size()) - 1; }

  void CheckRange(int64_t first, int64_t end) const {
    if (first >= 0 && first <= end && end <= document_count()) return;
    throw Error(ErrorKind::kInput, fmt::format("{}: asked for documents [{}, {}), the task has {}",
                                               directory.string(), first, end, document_count()));
  }

  std::string_view Lines(const MappedFile& file, uint64_t begin, uint64_t end) const {
    return file.view().substr(begin, end - begin);
  }

  // The requests of one document, without tokens.
  std::vector<Request> Requests(int64_t doc_id) const;

  fs::path directory;
  MappedFile documents;
  MappedFile requests;
  std::vector<prepared::IndexEntry> index;
  Json task;
  std::string name;
  std::string code;
  int repeats = 1;
  std::unique_ptr<prepared::TokensFile> tokens;
};

std::vector<Request> PreparedTask::State::Requests(int64_t doc_id) const {
  const prepared::IndexEntry& begin = index[static_cast<size_t>(doc_id)];
  const prepared::IndexEntry& end = index[static_cast<size_t>(doc_id) + 1];
  const uint64_t count = end.first_request - begin.first_request;
  const std::string where =
      fmt::format("{}/requests.jsonl: document {}", directory.string(), doc_id);
  std::string_view rest = Lines(requests, begin.request_offset, end.request_offset);
  SamplingParams sampling;  // the last settings that were written out
  std::vector<Request> out;
  while (!rest.empty()) {
    const Json line = ParseJson(TakeLine(&rest), where);
    Request request;
    if (!out.empty()) request.context = out.back().context;
    request.doc_id = Field<int64_t>(line, "doc_id", where);
    request.idx = Field<int>(line, "idx", where);
    request.kind = KindOf(line, where);
    if (out.empty() || line.contains("context")) {
      request.context = Field<std::string>(line, "context", where);
    }
    request.continuation = FieldOr<std::string>(line, "continuation", "", where);
    if (line.contains("sampling")) sampling = SamplingFromJson(line["sampling"], where);
    if (request.kind == RequestKind::kGenerateUntil) request.sampling = sampling;
    if (request.doc_id != doc_id || request.idx != static_cast<int>(out.size())) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: found request (doc_id {}, idx {}), expected ({}, {})", where,
                              request.doc_id, request.idx, doc_id, out.size()),
                  prepared::kPrepareAgain);
    }
    out.push_back(std::move(request));
  }
  if (out.size() != count) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {} requests, the index says {}", where, out.size(), count),
                prepared::kPrepareAgain);
  }
  return out;
}

PreparedTask::PreparedTask(fs::path directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: not a folder, expected a prepared task", directory.string()));
  }
  try {
    state_ = std::make_unique<State>(directory);
  } catch (Error& e) {
    e.AddContext("prepared task");
    throw;
  }
}

PreparedTask::~PreparedTask() = default;
PreparedTask::PreparedTask(PreparedTask&&) noexcept = default;
PreparedTask& PreparedTask::operator=(PreparedTask&&) noexcept = default;

const fs::path& PreparedTask::directory() const { return state_->directory; }
const Json& PreparedTask::task() const { return state_->task; }
Json PreparedTask::Code() const {
  const std::string file = (state_->directory / "code.json").string();
  return state_->code.empty() ? Json() : ParseJson(state_->code, file);
}
std::string PreparedTask::name() const { return state_->name; }
int PreparedTask::repeats() const { return state_->repeats; }
int64_t PreparedTask::document_count() const { return state_->document_count(); }
int64_t PreparedTask::request_count() const {
  return static_cast<int64_t>(state_->index.back().first_request);
}

std::vector<Request> PreparedTask::Requests(int64_t first, int64_t end) const {
  state_->CheckRange(first, end);
  std::vector<Request> out;
  for (int64_t doc_id = first; doc_id < end; ++doc_id) {
    std::vector<Request> requests = state_->Requests(doc_id);
    uint64_t ordinal = state_->index[static_cast<size_t>(doc_id)].first_request;
    for (Request& request : requests) {
      if (state_->tokens) state_->tokens->Get(ordinal++, &request);
      out.push_back(std::move(request));
    }
  }
  return out;
}

PreparedDocument PreparedTask::Document(int64_t doc_id) const {
  state_->CheckRange(doc_id, doc_id + 1);
  const size_t at = static_cast<size_t>(doc_id);
  std::string_view rest = state_->Lines(state_->documents, state_->index[at].document_offset,
                                        state_->index[at + 1].document_offset);
  const std::string where =
      fmt::format("{}/documents.jsonl: document {}", state_->directory.string(), doc_id);
  const Json line = ParseJson(TakeLine(&rest), where);
  PreparedDocument document;
  document.doc_id = Field<int64_t>(line, "doc_id", where);
  document.doc = Field<Json>(line, "doc", where);
  document.target = Field<Json>(line, "target", where);
  document.choices = Field<Json>(line, "choices", where);
  if (line.contains("label")) document.label = line.at("label");
  if (line.contains("python")) document.python = line.at("python");
  if (document.doc_id != doc_id || !rest.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the index points at document {}", where, document.doc_id),
                prepared::kPrepareAgain);
  }
  return document;
}

void PreparedTask::MakeTokens(const std::string& tokenizer_key, const RequestEncoder& encode,
                              int threads) {
  try {
    if (AttachTokens(tokenizer_key)) return;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInput) throw;
    log::Warn("{}; it is made again", e.message());
  }
  prepared::TokensWriter writer(TokensPath(state_->directory, tokenizer_key));
  const int64_t block = kDocumentsPerThread * std::max(threads, 1);
  for (int64_t first = 0; first < document_count(); first += block) {
    const int64_t count = std::min(block, document_count() - first);
    std::vector<std::vector<Request>> encoded(static_cast<size_t>(count));
    ParallelFor(count, threads, [&](int64_t i) {
      std::vector<Request> requests = state_->Requests(first + i);
      for (Request& request : requests) encode(&request);
      encoded[static_cast<size_t>(i)] = std::move(requests);
    });
    for (const std::vector<Request>& requests : encoded) {
      for (const Request& request : requests) writer.Add(request);
    }
  }
  writer.Commit();
  if (!AttachTokens(tokenizer_key)) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: the tokens file vanished after it was written",
                            state_->directory.string()));
  }
}

bool PreparedTask::AttachTokens(const std::string& tokenizer_key) {
  const fs::path file = TokensPath(state_->directory, tokenizer_key);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return false;
  state_->tokens =
      std::make_unique<prepared::TokensFile>(file, static_cast<uint64_t>(request_count()));
  return true;
}

}  // namespace evald
