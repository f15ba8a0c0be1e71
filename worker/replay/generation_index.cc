#include "worker/replay/generation_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/names.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kEntriesMax = 1'000'000;
constexpr size_t kLineBytesMax = 64 << 20;
constexpr uint64_t kBytesMax = uint64_t{64} << 30;  // all of it is read before anything is answered
constexpr size_t kValuesMax = 1'000'000;            // in one line

// The number of values in a line is bounded: parsed, a malicious line could fill the memory.
Generation Read(std::string_view line, const std::string& where) {
  return GenerationFromJson(ParseJson(line, where, kValuesMax), where);
}

}  // namespace

GenerationIndex::GenerationIndex(const fs::path& path, const ReadRoots& roots) : path_(path) {
  const ReadFolder folder(path, roots);
  if (roots.HasFile(path)) {
    AddFile(roots.OpenFile(path), path, "");
  } else if (folder.exists()) {
    AddFolder(folder.HasFolder("generations") ? folder.Folder("generations") : folder);
  } else {
    throw Error(ErrorKind::kInput,
                roots.anywhere() ? path.string() + ": no such file or folder"
                                 : fmt::format("{}: {}", path.string(), ReadRoots::kNotThere),
                "name a generations file, or a run's folder");
  }
  if (lines_ == 0) {
    throw Error(ErrorKind::kInput, fmt::format("{}: holds no generations", path.string()),
                "expected <task>/*.jsonl, <task>.jsonl or a file in evald's format");
  }
}

void GenerationIndex::AddFolder(const ReadFolder& folder) {
  for (const std::string& name : folder.Names(".", kEntriesMax)) {
    const ReadFolder inner = folder.Folder(name);
    if (!inner.exists()) {
      const fs::path path = folder / name;
      if (path.extension() == ".jsonl") AddFile(folder.OpenFile(name), path, path.stem().string());
      continue;
    }
    for (const std::string& file : inner.Names(".", kEntriesMax)) {
      const fs::path path = inner / file;
      if (path.extension() == ".jsonl") AddFile(inner.OpenFile(file), path, name);
    }
  }
}

// Throws if two answers to one request differ. The database that says which of them counted is not
// here, and the order of the files' names says nothing.
void GenerationIndex::CheckEqual(const std::string& task, const Generation& generation,
                                 const Place& first, const std::string& where) const {
  const auto& [name, file] = files_[first.file];
  const std::string_view line = file.view().substr(first.offset, first.bytes);
  if (ToJson(Read(line, name)) == ToJson(generation)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: task '{}', document {}, request {}, repeat {}: another answer than "
                          "the one in {}",
                          where, task, generation.doc_id, generation.idx, generation.repeat, name),
              "keep the one that counts, or name a single file");
}

void GenerationIndex::AddFile(const UniqueFd& fd, const fs::path& path, const std::string& task) {
  Places& places = tasks_[task];
  files_.emplace_back(path.string(), MappedFile(fd, path));
  const std::string_view all = files_.back().second.view();
  const std::string name = task.empty() ? path.filename().string() : task;
  bytes_ += all.size();
  if (bytes_ > kBytesMax) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: generations of more than {} bytes in all", path.string(), kBytesMax),
        "name fewer tasks' files, or the file of one");
  }
  size_t number = 0;
  for (size_t begin = 0; begin < all.size(); ++begin) {
    ++number;
    // A sparse file may have a hole of a terabyte
    const std::string_view within = all.substr(begin, kLineBytesMax + 1);
    const size_t end = begin + std::min(within.find('\n'), within.size());
    if (end - begin > kLineBytesMax) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}:{}: a line of more than {} bytes", path.string(), number, kLineBytesMax),
          "leave this answer out, or cut it");
    }
    const std::string_view line = all.substr(begin, end - begin);
    if (!Trim(line).empty()) {
      const std::string where = fmt::format("{}:{}", path.string(), number);
      const Generation generation = Read(line, where);
      const RequestKey key{generation.doc_id, generation.idx, generation.repeat};
      const Place place{files_.size() - 1, begin, line.size()};
      const auto [earlier, fresh] = places.try_emplace(key, place);
      if (!fresh) {
        CheckEqual(name, generation, earlier->second, where);
        ++duplicates_;
      }
      ++lines_;
    }
    begin = end;
  }
}

const GenerationIndex::Places& GenerationIndex::PlacesOf(const std::string& task) {
  const auto single = tasks_.find("");
  if (single != tasks_.end()) {
    if (claimed_by_.empty()) claimed_by_ = task;
    if (claimed_by_ == task) return single->second;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: one file answers for one task, but '{}' and '{}' ask",
                            path_.string(), claimed_by_, task),
                "name a folder with <task>.jsonl for each");
  }
  for (const std::string& key : {FolderNameOf(task), task}) {  // made by evald, or by hand
    const auto found = tasks_.find(key);
    if (found != tasks_.end()) return found->second;
  }
  std::vector<std::string> names;
  for (const auto& [name, places] : tasks_) names.push_back(name);
  throw Error(ErrorKind::kInput, fmt::format("{}: holds no generations of the task '{}'{}",
                                             path_.string(), task, Suggestion(task, names)));
}

Generation GenerationIndex::Find(const std::string& task, const RequestKey& key, RequestKind kind) {
  const Places& places = PlacesOf(task);
  const std::string what = fmt::format("task '{}', document {}, request {}, repeat {}", task,
                                       key.doc_id, key.idx, key.repeat);
  const auto found = places.find(key);
  if (found == places.end()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: holds no generation for {}", path_.string(), what));
  }
  const auto& [name, file] = files_[found->second.file];
  const std::string_view line = file.view().substr(found->second.offset, found->second.bytes);
  Generation generation = Read(line, name);
  if (generation.kind != kind) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {}: found an answer to {}, expected one to {}", name, what,
                            ToString(generation.kind), ToString(kind)));
  }
  return generation;
}

}  // namespace evald
