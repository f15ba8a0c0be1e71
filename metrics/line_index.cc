#include "metrics/line_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/json_walk.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "evald/task_limits.h"

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

using Key = std::pair<int, int>;  // the request and the repeat

// The key of a generation's line in evald's form, {"doc_id":17,"idx":0,"repeat":3,...}, without
// parsing the rest. Nothing for any other line.
std::optional<Key> LeadingKey(std::string_view line) {
  Key key;
  size_t at = line.find(',');
  for (const auto& [name, value] :
       {std::pair(R"(,"idx":)", &key.first), std::pair(R"(,"repeat":)", &key.second)}) {
    const std::string_view begin = name;
    if (at == std::string_view::npos || !line.substr(at).starts_with(begin)) return std::nullopt;
    const char* const end = line.data() + line.size();
    const auto [after, error] = std::from_chars(line.data() + at + begin.size(), end, *value);
    if (error != std::errc() || after == end || *after != ',') return std::nullopt;
    at = static_cast<size_t>(after - line.data());
  }
  return key;
}

std::string Place(const std::filesystem::path& path, size_t number) {
  return fmt::format("{}:{}", path.string(), number);
}

}  // namespace

LineIndex::LineIndex(const std::filesystem::path& path, int64_t first, int64_t end,
                     uint64_t line_bytes_max)
    : path_(path), file_(path) {
  const std::string_view text = file_.view();
  uint32_t number = 0;
  for (uint64_t offset = 0; offset < text.size();) {
    const uint64_t stop = std::min<uint64_t>(text.find('\n', offset), text.size());
    const std::string_view content = Trim(text.substr(offset, stop - offset));
    ++number;
    RequireShortLine(content, {.bytes = line_bytes_max}, Place(path, number));
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

uint64_t LineIndex::Bytes(int64_t doc_id) const {
  uint64_t bytes = 0;
  for (const Line& line : Lines(doc_id)) bytes += line.bytes;
  return bytes;
}

std::vector<int64_t> LineIndex::Documents() const {
  std::vector<int64_t> documents;
  documents.reserve(lines_.size());
  for (const auto& [doc_id, lines] : lines_) documents.push_back(doc_id);
  return documents;
}

void GenerationReader::ForEach(int64_t doc_id, int requests, int repeats,
                               const std::function<void(Generation&&)>& visit) const {
  const auto expected = static_cast<size_t>(requests) * static_cast<size_t>(repeats);
  const std::vector<LineIndex::Line>& lines = index_.Lines(doc_id);
  const auto parsed = [&](const LineIndex::Line& line) {
    return GenerationFromJson(index_.Parse(line), index_.Where(line));
  };
  std::vector<std::pair<Key, const LineIndex::Line*>> answers;
  for (const LineIndex::Line& line : lines) {
    if (answers.size() > expected) break;  // too many
    std::optional<Key> key = LeadingKey(index_.Text(line));
    if (!key) {
      const Generation generation = parsed(line);
      key = {generation.idx, generation.repeat};
    }
    answers.emplace_back(*key, &line);
  }
  std::stable_sort(answers.begin(), answers.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < std::max(expected, answers.size()); ++i) {
    const Key key(static_cast<int>(i) / repeats, static_cast<int>(i) % repeats);
    if (i < answers.size() && i < expected && answers[i].first == key) continue;
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: found {} generations of document {}, expected {} ({} requests, {} "
                            "repeats); request {}, repeat {} is missing, doubled or too many",
                            index_.path().string(), lines.size(), doc_id, expected, requests,
                            repeats, key.first, key.second));
  }
  for (const auto& [key, line] : answers) {
    Generation generation = parsed(*line);
    if (Key(generation.idx, generation.repeat) != key) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: 'idx' or 'repeat' is there twice", index_.Where(*line)));
    }
    visit(std::move(generation));
  }
}

std::vector<Generation> GenerationReader::Read(int64_t doc_id, int requests, int repeats) const {
  std::vector<Generation> generations;
  ForEach(doc_id, requests, repeats,
          [&](Generation&& generation) { generations.push_back(std::move(generation)); });
  return generations;
}

const LineIndex::Line& ScoreReader::LineOf(int64_t doc_id) const {
  const std::vector<LineIndex::Line>& lines = index_.Lines(doc_id);
  if (!lines.empty()) return lines.front();
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("{}: document {} has no score", index_.path().string(), doc_id));
}

ScoredDocument ScoreReader::Read(int64_t doc_id) const {
  const LineIndex::Line& line = LineOf(doc_id);
  return ScoreFromJson(index_.Parse(line), index_.Where(line));
}

ScoredDocument ScoreReader::ReadNumbers(int64_t doc_id) const {
  const LineIndex::Line& line = LineOf(doc_id);
  TextInMemory text(index_.Text(line));
  JsonWalk walk(&text, index_.Where(line));
  Json numbers = Json::object();
  walk.Members(walk.Value({0, line.bytes}), [&](const std::string& key, TextSpan value) {
    if (key == "doc_id" || key == "judge") numbers[key] = walk.Parse(value, kNumbersBytesMax);
    if (key != "filters") return;
    numbers[key] = Json::array();
    walk.Items(value, [&](TextSpan filter) {
      if (numbers[key].size() >= kPipelinesMax) {
        throw Error(ErrorKind::kInput,
                    fmt::format("{}: more than {} filters", index_.Where(line), kPipelinesMax));
      }
      Json entry = Json::object();
      walk.Members(filter, [&](const std::string& name, TextSpan part) {
        if (name == "filtered") entry[name] = nullptr;
        if (name == "filter" || name == "metrics" || name == "fallbacks" || name == "python")
          entry[name] = walk.Parse(part, kNumbersBytesMax, kRunLineLimits.values);
      });
      numbers[key].push_back(std::move(entry));
    });
  });
  return ScoreFromJson(numbers, index_.Where(line));
}

std::string_view ScoreReader::Filtered(int64_t doc_id, const std::string& filter) const {
  const LineIndex::Line& line = LineOf(doc_id);
  TextInMemory text(index_.Text(line));
  JsonWalk walk(&text, index_.Where(line));
  std::optional<TextSpan> found;
  walk.Members(walk.Value({0, line.bytes}), [&](const std::string& key, TextSpan value) {
    if (key != "filters") return;
    walk.Items(value, [&](TextSpan entry) {
      bool is_meant = false;
      std::optional<TextSpan> filtered;
      walk.Members(entry, [&](const std::string& name, TextSpan part) {
        if (name == "filtered") filtered = part;
        if (name == "filter") is_meant = walk.Parse(part, kNumbersBytesMax) == filter;
      });
      if (is_meant && filtered && !found) found = filtered;
    });
  });
  if (found) return text.From(found->begin).substr(0, found->bytes());
  throw Error(ErrorKind::kInput, fmt::format("{}: document {} has no scores under the filter '{}'",
                                             index_.Where(line), doc_id, filter));
}

std::string_view ScoreReader::Detail(int64_t doc_id) const {
  const LineIndex::Line& line = LineOf(doc_id);
  TextInMemory text(index_.Text(line));
  JsonWalk walk(&text, index_.Where(line));
  std::string_view found;
  walk.Members(walk.Value({0, line.bytes}), [&](const std::string& key, TextSpan value) {
    if (key != "detail" || walk.FirstOf(value) == 'n') return;
    found = text.From(value.begin).substr(0, value.bytes());
  });
  return found;
}

}  // namespace evald
