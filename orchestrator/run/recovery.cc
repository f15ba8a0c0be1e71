#include "orchestrator/run/recovery.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/file_hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/names.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/generation.h"
#include "evald/score.h"
#include "metrics/line_index.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

struct FileName {
  int64_t trial = 0;
  int attempt = 0;
};

// "<trial>.<attempt>.jsonl", "<trial>.<attempt>-<first>.jsonl", each also with ".part".
bool ParseFileName(const std::string& name, FileName* parsed) {
  const char* end = name.data() + name.size();
  auto number = std::from_chars(name.data(), end, parsed->trial);
  if (number.ec != std::errc() || number.ptr == end || *number.ptr != '.') return false;
  number = std::from_chars(number.ptr + 1, end, parsed->attempt);
  return number.ec == std::errc();
}

// The files of one task and kind in a run's folder, sorted by trial and attempt.
std::vector<std::pair<FileName, std::string>> FilesIn(const fs::path& run, const std::string& kind,
                                                      const std::string& task) {
  std::vector<std::pair<FileName, std::string>> files;
  std::error_code error;
  const std::string folder = FolderNameOf(task);
  for (const auto& entry : fs::directory_iterator(run / kind / folder, error)) {
    FileName name;
    const std::string file = entry.path().filename().string();
    if (ParseFileName(file, &name)) files.emplace_back(name, kind + "/" + folder + "/" + file);
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.trial, a.first.attempt, a.second) <
           std::tie(b.first.trial, b.first.attempt, b.second);
  });
  return files;
}

// Whether the path is "generations/<folder>/<file>" or "scores/<folder>/<file>": a damaged file is
// renamed, so it must be the run's own.
bool LiesInRun(const std::string& path, FileKind kind) {
  const std::vector<std::string> parts = Split(path, '/');
  return parts.size() == 3 &&
         parts[0] == (kind == FileKind::kGenerations ? "generations" : "scores") &&
         std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
           return !part.empty() && part != "." && part != "..";
         });
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Requests per document of a prepared task, repeats included.
std::vector<int64_t> RequestsPerDocument(const PreparedTask& task) {
  std::vector<int64_t> counts(static_cast<size_t>(task.document_count()), 0);
  for (int64_t d = 0; d < task.document_count(); ++d) {
    counts[d] = static_cast<int64_t>(task.Requests(d, d + 1).size()) * task.repeats();
  }
  return counts;
}

// Documents that have all their generations in a complete file.
std::vector<int64_t> WholeGenerations(const fs::path& path, const std::vector<int64_t>& expected,
                                      CommittedFile* file) {
  std::map<int64_t, std::set<std::pair<int, int>>> seen;
  const auto visit = [&](size_t line, Json&& value) {
    const Generation generation =
        GenerationFromJson(value, fmt::format("{}:{}", path.string(), line));
    const bool known =
        generation.doc_id >= 0 && generation.doc_id < static_cast<int64_t>(expected.size());
    auto& requests = seen[known ? generation.doc_id : -1];
    // One too many shows that the document is not whole
    if (known &&
        static_cast<int64_t>(requests.size()) <= expected[static_cast<size_t>(generation.doc_id)]) {
      requests.insert({generation.idx, generation.repeat});
    }
    ++file->requests;
    file->truncated += generation.truncated > 0 ? 1 : 0;
    file->tokens_in += generation.tokens_in;
    file->tokens_out += generation.tokens_out;
  };
  ForEachJsonLine(path, visit, kRunLineLimits);
  std::vector<int64_t> whole;
  for (const auto& [document, requests] : seen) {
    if (document >= 0 &&
        static_cast<int64_t>(requests.size()) == expected[static_cast<size_t>(document)]) {
      whole.push_back(document);
    }
  }
  return whole;
}

std::vector<int64_t> WholeScores(const fs::path& path) {
  const ScoreReader reader(path);
  std::vector<int64_t> documents = reader.Documents();
  std::sort(documents.begin(), documents.end());
  for (const int64_t document : documents) reader.ReadNumbers(document);
  return documents;
}

class Recoverer {
 public:
  Recoverer(RunStore* store, std::string run, fs::path directory, const Suite& suite)
      : store_(store), run_(std::move(run)), directory_(std::move(directory)), suite_(suite) {}

  Recovery Recover() {
    if (const int64_t rows = store_->DropUnfounded(run_)) {
      log::Warn("run {}: {} rows of the database contradict others; their documents are done again",
                run_, rows);
    }
    DropDamaged();
    result_.record = store_->Load(run_);
    for (const auto& [trial, attempt] : result_.record.attempts) SeenTrial(trial);
    for (const SuiteTask& task : suite_.tasks) RecoverTask(task);
    result_.record = store_->Load(run_);
    KeepKnownDocuments(&result_.record.generated);
    KeepKnownDocuments(&result_.record.scored);
    return std::move(result_);
  }

 private:
  // Numbers that no run reaches are damage. The next trials' numbers must stay below 2^31.
  void SeenTrial(int64_t trial) {
    constexpr int64_t kTrialsMax = 1'000'000'000;
    if (trial < kTrialsMax) result_.first_trial = std::max(result_.first_trial, trial + 1);
  }

  // Drops documents that the run's tasks do not have. The tasks are those that the run was begun
  // with, so such rows are damage.
  void KeepKnownDocuments(std::map<std::string, std::map<int64_t, size_t>>* counted) const {
    std::map<std::string, int64_t> documents;
    for (const SuiteTask& task : suite_.tasks) documents[task.definition.name] = task.documents;
    std::erase_if(*counted, [&](const auto& task) { return documents.count(task.first) == 0; });
    for (auto& [task, files] : *counted) {
      std::erase_if(files, [&](const auto& entry) {
        return entry.first < 0 || entry.first >= documents[task];
      });
    }
  }

  void DropDamaged() {
    const RunRecord record = store_->Load(run_);
    for (const FileKind kind : {FileKind::kGenerations, FileKind::kScores}) {
      for (const CommittedFile& file :
           kind == FileKind::kGenerations ? record.generations : record.scores) {
        if (!LiesInRun(file.path, kind)) {
          log::Warn("{}: a row of the database names the file '{}', which is none of the run's",
                    directory_.string(), file.path);
          store_->Forget(run_, kind, file.path);
          continue;
        }
        const fs::path path = directory_ / file.path;
        const bool whole = fs::is_regular_file(path) && HashOfFile(path).hash == file.hash;
        if (whole) continue;
        store_->Forget(run_, kind, file.path);
        SetAside(path, "lost or damaged");
      }
    }
  }

  void SetAside(const fs::path& path, const std::string& why) {
    log::Warn("{}: {}; its documents are done again", path.string(), why);
    if (fs::exists(path)) fs::rename(path, path.string() + ".damaged");
    ++result_.dropped_files;
  }

  void RecoverTask(const SuiteTask& task) {
    RecoveredTask recovered;
    const std::string& name = task.definition.name;
    const PreparedTask prepared(task.prepared);
    std::vector<int64_t> expected;  // made only if a file needs it
    for (const auto& [file, path] : FilesIn(directory_, "generations", name)) {
      SeenTrial(file.trial);
      if (EndsWith(path, ".part")) {
        recovered.salvage.push_back(path);
      } else if (!Known(result_.record.generations, path) && EndsWith(path, ".jsonl")) {
        if (expected.empty()) expected = RequestsPerDocument(prepared);
        AdoptGenerations(name, file, path, expected);
      }
    }
    result_.record = store_->Load(run_);
    for (const auto& [file, path] : FilesIn(directory_, "scores", name)) {
      if (EndsWith(path, ".jsonl") && !Known(result_.record.scores, path))
        AdoptScores(name, file, path);
    }
    result_.tasks.push_back(std::move(recovered));
  }

  static bool Known(const std::vector<CommittedFile>& files, const std::string& path) {
    return std::any_of(files.begin(), files.end(),
                       [&](const CommittedFile& f) { return f.path == path; });
  }

  CommittedFile Describe(const std::string& task, const FileName& name,
                         const std::string& path) const {
    const FileHash content = HashOfFile(directory_ / path);
    CommittedFile file;
    file.task = task;
    file.trial = name.trial;
    file.attempt = name.attempt;
    file.path = path;
    file.hash = content.hash;
    file.bytes = content.bytes;
    return file;
  }

  void AdoptGenerations(const std::string& task, const FileName& name, const std::string& path,
                        const std::vector<int64_t>& expected) {
    CommittedFile file = Describe(task, name, path);
    try {
      const std::vector<int64_t> whole = WholeGenerations(directory_ / path, expected, &file);
      Adopt(FileKind::kGenerations, &file, whole);
    } catch (const Error& e) {
      SetAside(directory_ / path, e.what());
    }
  }

  // Adopts scores if they were made from the generations that count: both files then have the same
  // trial and attempt.
  void AdoptScores(const std::string& task, const FileName& name, const std::string& path) {
    CommittedFile file = Describe(task, name, path);
    const auto& generated = result_.record.generated[task];
    std::vector<int64_t> whole, documents;
    try {
      whole = WholeScores(directory_ / path);
    } catch (const Error& e) {
      return SetAside(directory_ / path, e.what());
    }
    for (const int64_t document : whole) {
      const auto found = generated.find(document);
      if (found == generated.end()) continue;
      const CommittedFile& source = result_.record.generations[found->second];
      if (source.trial == name.trial && source.attempt == name.attempt)
        documents.push_back(document);
    }
    Adopt(FileKind::kScores, &file, documents);
  }

  void Adopt(FileKind kind, CommittedFile* file, const std::vector<int64_t>& documents) {
    if (documents.empty()) return;
    file->first = *std::min_element(documents.begin(), documents.end());
    file->end = *std::max_element(documents.begin(), documents.end()) + 1;
    store_->Commit(run_, kind, *file, documents);
    ++result_.adopted_files;
  }

  RunStore* store_;
  std::string run_;
  fs::path directory_;
  const Suite& suite_;
  Recovery result_;
};

}  // namespace

Recovery RecoverRun(RunStore* store, const std::string& run, const fs::path& directory,
                    const Suite& suite) {
  return Recoverer(store, run, directory, suite).Recover();
}

}  // namespace evald
