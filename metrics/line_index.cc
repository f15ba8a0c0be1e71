#include "metrics/line_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

// The document of a line in evald's form, {"doc_id":17,...}, without parsing the rest. Nothing for
// any other line, including a cut one.
std::optional<int64_t> LeadingDocument(std::string_view line) {
  constexpr std::string_view kBegin = R"({"doc_id":)";
  if (!line.starts_with(kBegin) || line.back() != '}') return std::nullopt;
  int64_t document = 0;
  const char* const end = line.data() + line.size();
  const auto [after, error] = std::from_chars(line.data() + kBegin.size(), end, document);
  if (error != std::errc() || after == end || *after != ',') return std::nullopt;
  return document;
}

std::string Place(const std::filesystem::path& path, size_t number) {
  return fmt::format("{}:{}", path.string(), number);
}

}  // namespace

LineIndex::LineIndex(const std::filesystem::path& path, int64_t first, int64_t end)
    : path_(path), file_(path) {
  const std::string_view text = file_.view();
  uint32_t number = 0;
  for (uint64_t offset = 0; offset < text.size();) {
    const uint64_t stop = std::min<uint64_t>(text.find('\n', offset), text.size());
    const std::string_view content = Trim(text.substr(offset, stop - offset));
    ++number;
    RequireShortLine(content, kRunLineLimits, Place(path, number));
    if (!content.empty()) {
      const Line line{static_cast<uint64_t>(content.data() - text.data()),
                      static_cast<uint32_t>(content.size()), number};
      const auto leading = LeadingDocument(content);
      const int64_t doc_id =
          leading ? *leading : Field<int64_t>(Parse(line), "doc_id", Where(line));
      if (doc_id >= first && doc_id < end) lines_[doc_id].push_back(line);
    }
    offset = stop + 1;
  }
}

const std::vector<LineIndex::Line>& LineIndex::Lines(int64_t doc_id) const {
  static const std::vector<Line> kNone;
  const auto found = lines_.find(doc_id);
  return found == lines_.end() ? kNone : found->second;
}

Json LineIndex::Parse(const Line& line) const {
  return ParseJson(file_.view().substr(line.offset, line.bytes), Where(line),
                   kRunLineLimits.values);
}

std::string LineIndex::Where(const Line& line) const { return Place(path_, line.number); }

std::vector<Generation> GenerationReader::Read(int64_t doc_id, int requests, int repeats) const {
  const auto expected = static_cast<size_t>(requests) * static_cast<size_t>(repeats);
  const std::vector<LineIndex::Line>& lines = index_.Lines(doc_id);
  std::vector<Generation> generations;
  for (const LineIndex::Line& line : lines) {
    if (generations.size() > expected) break;  // too many
    generations.push_back(GenerationFromJson(index_.Parse(line), index_.Where(line)));
  }
  std::stable_sort(generations.begin(), generations.end(),
                   [](const Generation& a, const Generation& b) {
                     return std::pair(a.idx, a.repeat) < std::pair(b.idx, b.repeat);
                   });
  for (size_t i = 0; i < std::max(expected, generations.size()); ++i) {
    const int idx = static_cast<int>(i) / repeats;
    const int repeat = static_cast<int>(i) % repeats;
    if (i < generations.size() && i < expected && generations[i].idx == idx &&
        generations[i].repeat == repeat) {
      continue;
    }
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: found {} generations of document {}, expected {} ({} requests, {} "
                            "repeats); request {}, repeat {} is missing, doubled or too many",
                            index_.path().string(), lines.size(), doc_id, expected, requests,
                            repeats, idx, repeat));
  }
  return generations;
}

ScoredDocument ScoreReader::Read(int64_t doc_id) const {
  const std::vector<LineIndex::Line>& lines = index_.Lines(doc_id);
  if (lines.empty()) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: document {} has no score", index_.path().string(), doc_id));
  }
  return ScoreFromJson(index_.Parse(lines.front()), index_.Where(lines.front()));
}

}  // namespace evald
