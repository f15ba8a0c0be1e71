#include "metrics/judge/answer_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Must change whenever the same file would be read otherwise than before.
constexpr int kAnswerFormat = 1;

Json AnswerToJson(const std::string& key, const KeptAnswer& answer) {
  return {{"format", kAnswerFormat},
          {"key", key},
          {"text", answer.completion.text},
          {"cut", answer.completion.cut},
          {"tokens_in", answer.completion.tokens_in},
          {"tokens_out", answer.completion.tokens_out},
          {"run", answer.asked_for.run},
          {"task", answer.asked_for.task},
          {"document", answer.asked_for.document}};
}

std::optional<KeptAnswer> AnswerFromJson(const Json& json, const std::string& key,
                                         const std::string& where) {
  if (Field<int>(json, "format", where) != kAnswerFormat ||
      Field<std::string>(json, "key", where) != key)
    return std::nullopt;
  KeptAnswer answer;
  answer.completion.text = Field<std::string>(json, "text", where);
  answer.completion.cut = Field<bool>(json, "cut", where);
  answer.completion.tokens_in = Field<int64_t>(json, "tokens_in", where);
  answer.completion.tokens_out = Field<int64_t>(json, "tokens_out", where);
  answer.asked_for = {Field<std::string>(json, "run", where),
                      Field<std::string>(json, "task", where),
                      Field<int64_t>(json, "document", where)};
  return answer;
}

}  // namespace

std::string AnswerCache::KeyOf(const std::string& base_url, const std::string& body) {
  return Sha256Hex(base_url + "\n" + body).substr(0, 32);
}

fs::path AnswerCache::FileOf(const std::string& key) const {
  return folder_ / key.substr(0, 2) / (key + ".json");
}

std::optional<KeptAnswer> AnswerCache::Find(const std::string& key) const {
  if (folder_.empty()) {
    const auto found = in_memory_.find(key);
    return found == in_memory_.end() ? std::nullopt : std::optional(found->second);
  }
  const fs::path file = FileOf(key);
  std::error_code error;
  if (!fs::is_regular_file(file, error)) return std::nullopt;
  try {
    return AnswerFromJson(ParseJson(ReadFile(file), file.string()), key, file.string());
  } catch (const Error& e) {
    log::Warn("{}; the judge is asked again", e.message());
    return std::nullopt;
  }
}

void AnswerCache::Keep(const std::string& key, const KeptAnswer& answer) {
  if (folder_.empty()) {
    in_memory_[key] = answer;
    return;
  }
  const fs::path file = FileOf(key);
  MakeRoom(file.parent_path());
  WriteFileAtomic(file, ToLine(AnswerToJson(key, answer)) + "\n");
}

// Counts a folder's files when it is first written to. Beyond the limit, removes the older half.
void AnswerCache::MakeRoom(const fs::path& folder) {
  const auto [count, fresh] = counts_.try_emplace(folder, 0);
  if (fresh) MakeDirectories(folder);
  if (!fresh && ++count->second <= kAnswersPerFolderMax) return;
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::error_code gone;
    const auto time = entry.last_write_time(gone);
    if (!gone) files.emplace_back(time, entry.path());
  }
  count->second = files.size() + 1;
  if (count->second <= kAnswersPerFolderMax) return;
  std::sort(files.begin(), files.end());
  files.resize(files.size() / 2);
  for (const auto& [time, path] : files) fs::remove(path, error);
  count->second -= files.size();
}

}  // namespace evald
