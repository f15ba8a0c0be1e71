#include "worker/generations_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/fail_point.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// A file to salvage from. It is held open, so that it can be read after its name is gone.
struct Source {
  std::string name;
  MappedFile file;
};

std::vector<Source> OpenSources(const std::vector<std::string>& names) {
  std::vector<Source> sources;
  for (const std::string& name : names) {
    std::error_code ignored;
    if (fs::is_regular_file(name, ignored)) sources.push_back({name, MappedFile(name)});
  }
  return sources;
}

// Removes the name of an existing `.part` of this very attempt, from before a crash, and keeps its
// content mapped: it must not be truncated while it is read.
PendingFile OpenFresh(const fs::path& path) {
  ::unlink((path.string() + ".part").c_str());
  return PendingFile(path);
}

}  // namespace

GenerationsFile::GenerationsFile(const fs::path& path, int64_t first, int64_t end,
                                 const std::vector<std::string>& salvage)
    : path_(path) {
  std::vector<std::string> names = salvage;
  names.push_back(path.string() + ".part");
  const std::vector<Source> sources = OpenSources(names);
  MakeDirectories(path.parent_path());
  part_.emplace(OpenFresh(path));
  for (const Source& source : sources) Salvage(source.name, source.file.view(), first, end);
  Flush();
}

void GenerationsFile::Salvage(const std::string& file, std::string_view bytes, int64_t first,
                              int64_t end) {
  int64_t refused = 0;
  for (size_t newline; (newline = bytes.find('\n')) != std::string_view::npos;) {
    const std::string_view line = bytes.substr(0, newline);
    bytes.remove_prefix(newline + 1);
    try {
      const Generation generation = GenerationFromJson(ParseJson(line, file), file);
      const RequestKey key{generation.doc_id, generation.idx, generation.repeat};
      if (key.doc_id < first || key.doc_id >= end || places_.contains(key)) continue;
      AddLine(generation, false);
      ++salvaged_;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kInput) throw;
      if (refused++ == 0) log::Warn("a line that cannot be salvaged: {}", e.what());
    }
  }
}

bool GenerationsFile::Expect(const RequestKey& key, RequestKind kind) {
  const auto found = places_.find(key);
  if (found == places_.end()) return false;
  if (found->second.kind != kind) {
    places_.erase(found);
    in_order_ = false;
    return false;
  }
  found->second.expected = true;
  return true;
}

void GenerationsFile::Add(const Generation& generation) { AddLine(generation, true); }

void GenerationsFile::AddLine(const Generation& generation, bool expected) {
  const RequestKey key{generation.doc_id, generation.idx, generation.repeat};
  const std::string line = ToLine(ToJson(generation)) + '\n';
  if (line.size() > kAnswerBytesMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("document {}: an answer takes {}, expected at most {}", key.doc_id,
                            HumanBytes(line.size()), HumanBytes(kAnswerBytesMax)),
                "ask for shorter answers (max_gen_toks)");
  }
  const auto [where, added] = places_.try_emplace(
      key, Place{part_->bytes(), static_cast<uint32_t>(line.size()), generation.kind, expected,
                 generation.truncated > 0, generation.tokens_in, generation.tokens_out, !expected});
  if (!added) {
    throw Error(ErrorKind::kInternal, fmt::format("document {}, request {}, repeat {}: a second "
                                                  "generation",
                                                  key.doc_id, key.idx, key.repeat));
  }
  in_order_ = in_order_ && (places_.size() == 1 || last_ < key);
  last_ = key;
  part_->Append(line);
  FailPoint("worker.after_line");
}

void GenerationsFile::Flush() { part_->Flush(); }

GenerationsSummary GenerationsFile::Summary() const {
  GenerationsSummary summary;
  summary.requests = static_cast<int64_t>(places_.size());
  for (const auto& [key, place] : places_) {
    summary.bytes += place.bytes;
    summary.truncated += place.truncated ? 1 : 0;
    summary.tokens_in += place.tokens_in;
    summary.tokens_out += place.tokens_out;
    summary.salvaged += place.salvaged ? 1 : 0;
  }
  return summary;
}

GenerationsSummary GenerationsFile::Commit() {
  const size_t dropped =
      std::erase_if(places_, [](const auto& entry) { return !entry.second.expected; });
  GenerationsSummary summary = Summary();
  FailPoint("worker.before_commit");
  if (in_order_ && dropped == 0) {
    summary.hash = part_->HashHex();
    part_->Commit();
  } else {
    CommitSorted(&summary);
  }
  FailPoint("worker.after_rename");
  return summary;
}

void GenerationsFile::CommitSorted(GenerationsSummary* summary) {
  Flush();
  const MappedFile lines(path_.string() + ".part");
  PendingFile sorted(path_.string() + ".sorted");
  try {
    for (const auto& [key, place] : places_) {
      sorted.Append(lines.view().substr(place.offset, place.bytes));
    }
    summary->hash = sorted.HashHex();
    sorted.Commit();
  } catch (...) {
    sorted.Discard();
    throw;
  }
  FailPoint("worker.after_sort");
  if (::rename(sorted.path().c_str(), path_.c_str()) != 0) ThrowErrno(path_, "rename", errno);
  FsyncDirectory(path_.parent_path());
  part_->Discard();
}

}  // namespace evald
