#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/fail_point.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "prepared/hashes.h"
#include "prepared/index.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Makes a folder of a new name beside `directory`, so that a rename can move it there.
fs::path MakeFolderBeside(const fs::path& directory) {
  fs::path normal = directory;
  if (!normal.has_filename()) normal = normal.parent_path();
  if (normal.has_parent_path()) MakeDirectories(normal.parent_path());
  std::string name = normal.string() + ".XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) ThrowErrno(name, "create a folder", errno);
  if (::chmod(name.c_str(), 0755) != 0) ThrowErrno(name, "chmod", errno);
  return name;
}

void CheckOrder(const PreparedDocument& document, const std::vector<Request>& requests,
                int64_t expected) {
  if (document.doc_id != expected) {
    throw Error(ErrorKind::kInternal,
                fmt::format("prepared task: found document {} after {}, expected {}",
                            document.doc_id, expected - 1, expected));
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].doc_id != expected || requests[i].idx != static_cast<int>(i) ||
        requests[i].repeat != 0) {
      throw Error(
          ErrorKind::kInternal,
          fmt::format("prepared task: found request (doc_id {}, idx {}, repeat {}), expected "
                      "({}, {}, 0)",
                      requests[i].doc_id, requests[i].idx, requests[i].repeat, expected, i));
    }
  }
}

// `sampling_before`: the settings last written for the document, as text; "" for its first request.
Json RequestLine(const Request& request, const Request* before, std::string* sampling_before) {
  Json line = {{"doc_id", request.doc_id}, {"idx", request.idx}, {"kind", ToString(request.kind)}};
  if (before == nullptr || before->context != request.context) line["context"] = request.context;
  if (request.kind == RequestKind::kLoglikelihood) line["continuation"] = request.continuation;
  if (request.kind == RequestKind::kGenerateUntil) {
    Json sampling = ToJson(request.sampling);
    std::string text = ToLine(sampling);
    if (text != *sampling_before) {
      line["sampling"] = std::move(sampling);
      *sampling_before = std::move(text);
    }
  }
  return line;
}

}  // namespace

struct PreparedTaskWriter::State {
  State(fs::path final_directory, uint64_t most)
      : directory(std::move(final_directory)),
        bytes_max(most),
        temporary(MakeFolderBeside(directory)),
        documents(temporary / "documents.jsonl"),
        requests(temporary / "requests.jsonl") {}
  ~State() {
    std::error_code ignored;
    if (!published) fs::remove_all(temporary, ignored);
  }

  // Throws if `more` bytes of this document would be too many.
  void CheckBytes(uint64_t more, int64_t doc_id) const {
    const uint64_t bytes = documents.bytes() + requests.bytes() + more;
    if (bytes <= bytes_max) return;
    throw Error(ErrorKind::kInput,
                fmt::format("the prepared task reaches {} with document {}, and may take {}",
                            HumanBytes(bytes), doc_id, HumanBytes(bytes_max)),
                "use fewer or shorter documents, or raise 'limits.disk'");
  }

  fs::path directory;
  uint64_t bytes_max;
  fs::path temporary;
  PendingFile documents;
  PendingFile requests;
  std::vector<prepared::IndexEntry> index = {{}};
  std::string task_hash;
  std::string code_hash;  // empty: there is no code.json
  bool published = false;
};

PreparedTaskWriter::PreparedTaskWriter(fs::path directory, const Json& task, uint64_t bytes_max)
    : state_(std::make_unique<State>(std::move(directory), bytes_max)) {
  SetTask(task);
}

void PreparedTaskWriter::SetTask(const Json& task) {
  const std::string text = ToLine(task) + "\n";
  state_->task_hash = HashHex(text);
  WriteFileAtomic(state_->temporary / "task.json", text);
}

void PreparedTaskWriter::SetCode(const Json& code) {
  const std::string text = ToLine(code) + "\n";
  state_->code_hash = HashHex(text);
  WriteFileAtomic(state_->temporary / "code.json", text);
}

PreparedTaskWriter::~PreparedTaskWriter() = default;

void PreparedTaskWriter::Add(const PreparedDocument& document,
                             const std::vector<Request>& requests) {
  CheckOrder(document, requests, static_cast<int64_t>(state_->index.size()) - 1);
  Json kept = {{"doc_id", document.doc_id},
               {"doc", document.doc},
               {"target", document.target},
               {"choices", document.choices}};
  if (!document.label.is_null()) kept["label"] = document.label;
  if (!document.python.is_null()) kept["python"] = document.python;
  std::string line = ToLine(kept) + "\n";
  state_->CheckBytes(line.size(), document.doc_id);
  state_->documents.Append(line);
  const Request* before = nullptr;
  std::string sampling_before;
  for (const Request& request : requests) {
    line = ToLine(RequestLine(request, before, &sampling_before)) + "\n";
    state_->CheckBytes(line.size(), document.doc_id);
    state_->requests.Append(line);
    before = &request;
  }
  state_->index.push_back({state_->documents.bytes(), state_->requests.bytes(),
                           state_->index.back().first_request + requests.size()});
}

void PreparedTaskWriter::Finish() {
  state_->documents.Commit();
  state_->requests.Commit();
  const std::string index = prepared::EncodeIndex(state_->index);
  WriteFileAtomic(state_->temporary / "index.bin", index);
  prepared::Hashes hashes = {{"documents.jsonl", state_->documents.HashHex()},
                             {"index.bin", HashHex(index)},
                             {"requests.jsonl", state_->requests.HashHex()},
                             {"task.json", state_->task_hash}};
  if (!state_->code_hash.empty()) hashes["code.json"] = state_->code_hash;
  prepared::WriteHashes(state_->temporary, hashes);
  fs::path target = state_->directory;
  if (!target.has_filename()) target = target.parent_path();
  FailPoint("prepared.written");
  if (::rename(state_->temporary.c_str(), target.c_str()) == 0) {
    state_->published = true;
    FailPoint("prepared.renamed");
    FsyncDirectory(target.parent_path());
  } else if (errno != ENOTEMPTY && errno != EEXIST) {
    ThrowErrno(target, "rename a folder to this name", errno);
  }
}

}  // namespace evald
