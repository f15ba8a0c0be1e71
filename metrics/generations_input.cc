#include "metrics/generations_input.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/foreign_generations.h"

namespace evald {
namespace {

/// Room for all answers to a document (128 MiB) and the document itself (64 MiB).
constexpr size_t kLineBytesMax = 192 << 20;
constexpr size_t kPieceBytes = 16384;
constexpr size_t kGrownBytes = 1 << 20;

// The lines of a file that may be gzipped (zlib reads other files unchanged).
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path)
      : path_(path), file_(gzopen(path.c_str(), "rb"), gzclose) {
    if (!file_) {
      throw Error(ErrorKind::kInput, fmt::format("{}: cannot be opened: {}", path.string(),
                                                 errno == 0 ? "out of memory" : strerror(errno)));
    }
  }

  bool Next(std::string* line) {
    line->clear();
    char piece[kPieceBytes];
    while (gzgets(file_.get(), piece, sizeof piece) != nullptr) {
      // A string that doubles holds the line three times for a moment. Reserved memory that is not
      // written takes none.
      if (line->size() > kGrownBytes) line->reserve(kLineBytesMax + 2 * kPieceBytes);
      line->append(piece);
      if (!line->empty() && line->back() == '\n') break;
      if (line->size() > kLineBytesMax) {
        throw Error(ErrorKind::kInput, fmt::format("{}: a line is longer than {}", path_.string(),
                                                   HumanBytes(kLineBytesMax)));
      }
    }
    int code = Z_OK;
    const char* message = gzerror(file_.get(), &code);
    if (code != Z_OK && code != Z_STREAM_END) {
      throw Error(ErrorKind::kInput, fmt::format("{}: {}", path_.string(),
                                                 code == Z_ERRNO ? strerror(errno) : message));
    }
    return !line->empty();
  }

 private:
  std::filesystem::path path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

// The answered requests, and the lines of their answers.
class Answered {
 public:
  explicit Answered(const PreparedTask& task) : task_(task) {}

  void Add(const Generation& generation, size_t line, const std::string& where) {
    if (generation.doc_id < 0 || generation.doc_id >= task_.document_count()) {
      throw Error(ErrorKind::kInput, fmt::format("{}: found doc_id {}, expected 0 to {}", where,
                                                 generation.doc_id, task_.document_count() - 1));
    }
    auto& lines = lines_[generation.doc_id];
    const auto [found, is_new] = lines.try_emplace({generation.idx, generation.repeat}, line);
    if (!is_new) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: document {}, request {}, repeat {} was answered in line {}", where,
                      generation.doc_id, generation.idx, generation.repeat, found->second));
    }
    repeats_ = std::max(repeats_, generation.repeat + 1);
    ++count_;
  }

  // Checks that documents with answers have all of them.
  void Finish(const std::string& file, ImportedGenerations* imported) const {
    imported->generations = count_;
    imported->repeats = repeats_;
    for (int64_t doc_id = 0; doc_id < task_.document_count(); ++doc_id) {
      const auto found = lines_.find(doc_id);
      if (found == lines_.end()) {
        imported->missing.push_back(doc_id);
        continue;
      }
      ++imported->documents;
      const std::vector<Request> requests = task_.Requests(doc_id, doc_id + 1);
      const size_t expected = requests.size() * static_cast<size_t>(repeats_);
      const auto& [idx, repeat] = found->second.rbegin()->first;
      if (found->second.size() != expected || idx != static_cast<int>(requests.size()) - 1 ||
          found->second.begin()->first != std::pair(0, 0) || repeat != repeats_ - 1) {
        throw Error(
            ErrorKind::kInput,
            fmt::format("{}: document {} has {} answers, expected {} ({} requests, {} repeats, "
                        "as many as any document has)",
                        file, doc_id, found->second.size(), expected, requests.size(), repeats_));
      }
    }
  }

 private:
  const PreparedTask& task_;
  std::map<int64_t, std::map<std::pair<int, int>, size_t>> lines_;
  int repeats_ = 1;
  int64_t count_ = 0;
};

}  // namespace

const char* ToString(GenerationsForm form) {
  switch (form) {
    case GenerationsForm::kEvald:
      return "evald";
    case GenerationsForm::kSamples:
      return "samples";
    case GenerationsForm::kCompletions:
      return "completions";
  }
  throw Error(ErrorKind::kInternal, "a form of generations without a name");
}

ImportedGenerations ImportGenerations(const PreparedTask& task, const std::filesystem::path& file,
                                      const std::filesystem::path& out) {
  ImportedGenerations imported;
  LineReader lines(file);
  std::unique_ptr<ForeignReader> reader;
  Answered answered(task);
  PendingFile committed(out);
  try {
    std::string text;
    for (size_t number = 1; lines.Next(&text); ++number) {
      const std::string_view content = Trim(text);
      if (content.empty()) continue;
      const std::string where = fmt::format("{}:{}", file.string(), number);
      const Json line = ParseJson(content, where);
      if (!reader) {
        imported.form = FormOf(line, where);
        try {
          reader = MakeForeignReader(imported.form, task);
        } catch (Error& e) {
          throw e.AddContext(where);
        }
      } else if (FormOf(line, where) != imported.form) {
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: the form changes from {} to {}", where,
                                ToString(imported.form), ToString(FormOf(line, where))));
      }
      if (reader->IsBeyondLimit(line)) {
        ++imported.beyond_limit;
        continue;
      }
      for (const Generation& generation : reader->Read(line, where)) {
        answered.Add(generation, number, where);
        committed.Append(ToLine(ToJson(generation)) + "\n");
      }
    }
    if (!reader)
      throw Error(ErrorKind::kInput, fmt::format("{}: holds no generations", file.string()));
    answered.Finish(file.string(), &imported);
    imported.other_prompts = reader->other_prompts();
  } catch (...) {
    committed.Discard();
    throw;
  }
  committed.Commit();
  return imported;
}

}  // namespace evald
