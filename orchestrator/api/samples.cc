#include "orchestrator/api/samples.h"

#include <algorithm>
#include <cstring>

#include "evald/error.h"

namespace evald::api {

bool SampleIndex::FindLines(const RunFile& file, const Stopped& stopped) {
  if (found_) return true;
  const std::lock_guard lock(mutex_);
  TextInFile text = TextOf(file, stopped);
  const uint64_t end = std::min(read_ + kStepBytes, file.bytes);
  while (read_ < end) {
    const std::string_view piece = text.From(read_);
    for (const char* at = piece.data();
         (at = static_cast<const char*>(std::memchr(
              at, '\n', static_cast<size_t>(piece.data() + piece.size() - at)))) != nullptr;) {
      starts_.push_back(read_ + static_cast<uint64_t>(++at - piece.data()));
      if (starts_.size() > kLinesMax)
        throw Error(ErrorKind::kInput, "a samples file has too many lines");
    }
    read_ += piece.size();
    CountBytes();
  }
  if (read_ < file.bytes) return false;
  last_ends_ = starts_.back() == file.bytes;
  if (!last_ends_) starts_.push_back(file.bytes);
  found_ = true;
  return true;
}

TextSpan SampleIndex::Line(size_t line) const {
  const bool cut = line + 1 == lines() && !last_ends_;
  return {starts_[line], starts_[line + 1] - (cut ? 0 : 1)};
}

bool SampleIndex::MarkLines(const RunFile& file, const Stopped& stopped) {
  if (marked_) return true;
  const std::lock_guard lock(mutex_);
  TextInFile text = TextOf(file, stopped);
  uint64_t bytes = 0;
  while (marks_.size() < lines() && bytes < kStepBytes) {
    const TextSpan line = Line(marks_.size());
    const SampleMark mark = MarkOf(&text, line);
    const auto found = std::find(filters_.begin(), filters_.end(), mark.filter);
    const auto place = static_cast<size_t>(found - filters_.begin());
    if (found == filters_.end()) filters_.push_back(mark.filter);
    if (place >= 64) throw Error(ErrorKind::kInput, "a samples file has too many filters");
    documents_.push_back(mark.doc_id.value_or(-1));
    marks_.push_back(
        static_cast<uint8_t>(place * 4 + (mark.correct ? (*mark.correct ? 2 : 1) : 0)));
    bytes += line.bytes() + 1;
  }
  CountBytes();
  if (marks_.size() < lines()) return false;
  marked_ = true;
  return true;
}

bool SampleIndex::Matches(size_t line, const std::string& filter,
                          std::optional<bool> correct) const {
  const uint8_t mark = marks_[line];
  if (!filter.empty() && filters_[mark / 4] != filter) return false;
  return !correct || mark % 4 == (*correct ? 2 : 1);
}

std::shared_ptr<SampleIndex> SampleStore::IndexOf(const RunFile& file) {
  const std::lock_guard lock(mutex_);
  for (auto it = indexes_.begin(); it != indexes_.end(); ++it) {
    if (it->first != file.version) continue;
    indexes_.splice(indexes_.begin(), indexes_, it);
    return indexes_.front().second;
  }
  indexes_.emplace_front(file.version, std::make_shared<SampleIndex>());
  uint64_t bytes = 0;
  size_t count = 0;
  std::erase_if(indexes_, [&](const auto& entry) {
    bytes += entry.second->bytes();
    return count++ > 0 && (count > kIndexesMax || bytes > kIndexBytesMax);
  });
  return indexes_.front().second;
}

std::shared_ptr<const SampleIndex> SampleStore::Index(const RunFile& file, const SampleQuery& query,
                                                      const Stopped& stopped) {
  std::shared_ptr<SampleIndex> index = IndexOf(file);
  if (!index->FindLines(file, stopped)) return nullptr;
  if (NeedsMarks(query) && !index->MarkLines(file, stopped)) return nullptr;
  return index;
}

SamplePage AddPage(const SampleIndex& index, const RunFile& file, const SampleQuery& query,
                   const Stopped& stopped, PiecedText* out) {
  const bool filtered = NeedsMarks(query);
  SamplePage page;
  TextInFile text = TextOf(file, stopped);
  const uint64_t begun = out->bytes();
  for (uint64_t line = query.cursor; line < index.lines(); ++line) {
    if (filtered && !index.Matches(line, query.filter, query.correct)) continue;
    if (page.samples == query.limit || out->bytes() - begun > SampleStore::kPageBytesMax ||
        out->parts() > SampleStore::kPagePartsMax) {
      page.next = line;
      break;
    }
    if (page.samples++ > 0) out->Add(",");
    AddSample(&text, index.Line(line), out);
  }
  return page;
}

Json MarksPage(const SampleIndex& index, const SampleQuery& query) {
  std::string filter = query.filter;
  if (filter.empty() && !index.filters().empty()) filter = index.filters().front();
  Json documents = Json::array();
  std::string marks;
  Json next;
  for (uint64_t line = query.cursor; line < index.lines(); ++line) {
    if (!index.Matches(line, filter, std::nullopt)) continue;
    if (marks.size() == query.limit) {
      next = std::to_string(line);
      break;
    }
    documents.push_back(index.Document(line));
    marks += index.Mark(line);
  }
  return {{"filters", index.filters()},
          {"filter", filter},
          {"documents", std::move(documents)},
          {"marks", std::move(marks)},
          {"next", std::move(next)}};
}

}  // namespace evald::api
