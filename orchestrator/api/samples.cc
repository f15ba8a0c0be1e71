#include "orchestrator/api/samples.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::api {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr size_t kLineBytesMax = 64 << 20;

std::string ReadAt(const RunFile& file, uint64_t offset, size_t bytes) {
  std::string text(bytes, '\0');
  size_t got = 0;
  while (got < bytes) {
    const ssize_t count =
        ::pread(file.fd.get(), text.data() + got, bytes - got, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw Error(ErrorKind::kInfrastructure, "a samples file is shorter than it was");
    got += static_cast<size_t>(count);
  }
  return text;
}

// Keeps the members of the outermost object that make a mark, and skips all others.
class MarkReader : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Number(std::nullopt); }
  bool boolean(bool value) override { return Number(value ? 1.0 : 0.0); }
  bool number_integer(number_integer_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return Number(value); }
  bool string(string_t& value) override {
    if (depth_ == 1 && key_ == "filter") mark.filter = value;
    if (depth_ == 2 && key_ == "metrics" && metric.empty()) metric = value;
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ > 0; }
  bool key(string_t& value) override {
    if (depth_ == 1) key_ = value;
    return true;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override { return ++depth_ > 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

  SampleMark mark;
  std::string metric;
  std::map<std::string, double> numbers;

 private:
  bool Number(std::optional<double> value) {
    if (depth_ == 1 && value) numbers[key_] = *value;
    return true;
  }
  int depth_ = 0;
  std::string key_;
};

std::optional<bool> Correct(double value) {
  if (value == 1) return true;
  if (value == 0) return false;
  return std::nullopt;
}

Json MemberOr(const Json& object, const char* name, Json fallback) {
  const auto found = object.find(name);
  return found == object.end() ? fallback : *found;
}

// The names are those of lm-evaluation-harness's samples; see docs/formats.md.
Json ResourceOf(const Json& sample) {
  const Json arguments = MemberOr(sample, "arguments", Json::object());
  Json continuations = Json::array(), scores = Json::object();
  Json prompt;
  for (const auto& [name, argument] : arguments.items()) {
    if (prompt.is_null()) prompt = MemberOr(argument, "arg_0", nullptr);
    const Json second = MemberOr(argument, "arg_1", nullptr);
    if (second.is_string()) continuations.push_back(second);
  }
  Json correct;
  for (const Json& metric : MemberOr(sample, "metrics", Json::array())) {
    const std::string& name = metric.get_ref<const std::string&>();
    const Json value = MemberOr(sample, name.c_str(), nullptr);
    if (scores.empty() && (value.is_number() || value.is_boolean())) {
      const auto verdict =
          Correct(value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>());
      if (verdict) correct = *verdict;
    }
    scores[name] = value;
  }
  return {{"doc_id", MemberOr(sample, "doc_id", nullptr)},
          {"filter", MemberOr(sample, "filter", nullptr)},
          {"correct", std::move(correct)},
          {"scores", std::move(scores)},
          {"prompt", std::move(prompt)},
          {"continuations", std::move(continuations)},
          {"answers", MemberOr(sample, "resps", Json::array())},
          {"filtered", MemberOr(sample, "filtered_resps", nullptr)},
          {"target", MemberOr(sample, "target", nullptr)},
          {"doc", MemberOr(sample, "doc", nullptr)}};
}

}  // namespace

SampleMark MarkOf(std::string_view line) {
  MarkReader reader;
  if (!Json::sax_parse(line, &reader))
    throw Error(ErrorKind::kInput, "a line of a samples file is not JSON");
  const auto value = reader.numbers.find(reader.metric);
  if (value != reader.numbers.end()) reader.mark.correct = Correct(value->second);
  return reader.mark;
}

Json SampleResource(std::string_view line) {
  const Json sample = ParseJson(line, "a line of a samples file");
  try {
    return ResourceOf(sample);
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorKind::kInput,
                fmt::format("a line of a samples file is no sample: {}", error.what()));
  }
}

SampleIndex::SampleIndex(const RunFile& file) {
  starts_.push_back(0);
  for (uint64_t offset = 0; offset < file.bytes;) {
    const std::string piece =
        ReadAt(file, offset, std::min<uint64_t>(kReadBytes, file.bytes - offset));
    for (const char* at = piece.data();
         (at = static_cast<const char*>(std::memchr(
              at, '\n', static_cast<size_t>(piece.data() + piece.size() - at)))) != nullptr;) {
      starts_.push_back(offset + static_cast<uint64_t>(++at - piece.data()));
      if (starts_.size() > kLinesMax)
        throw Error(ErrorKind::kInput, "a samples file has too many lines");
    }
    offset += piece.size();
  }
  if (starts_.back() != file.bytes) starts_.push_back(file.bytes);
}

std::string SampleIndex::Line(const RunFile& file, size_t line) const {
  const uint64_t bytes = starts_[line + 1] - starts_[line];
  if (bytes > kLineBytesMax) throw Error(ErrorKind::kInput, "a line of a samples file is too long");
  std::string text = ReadAt(file, starts_[line], bytes);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

void SampleIndex::Mark(const RunFile& file) {
  std::call_once(marked_, [&] {
    std::vector<uint8_t> marks;
    marks.reserve(lines());
    for (size_t line = 0; line < lines(); ++line) {
      const SampleMark mark = MarkOf(Line(file, line));
      const auto found = std::find(filters_.begin(), filters_.end(), mark.filter);
      const size_t place = static_cast<size_t>(found - filters_.begin());
      if (found == filters_.end()) filters_.push_back(mark.filter);
      if (place >= 64) throw Error(ErrorKind::kInput, "a samples file has too many filters");
      marks.push_back(
          static_cast<uint8_t>(place * 4 + (mark.correct ? (*mark.correct ? 2 : 1) : 0)));
    }
    marks_ = std::move(marks);
  });
}

bool SampleIndex::Matches(size_t line, const std::string& filter,
                          std::optional<bool> correct) const {
  const uint8_t mark = marks_[line];
  if (!filter.empty() && filters_[mark / 4] != filter) return false;
  return !correct || mark % 4 == (*correct ? 2 : 1);
}

std::shared_ptr<SampleIndex> SampleStore::IndexOf(const RunFile& file) {
  {
    const std::lock_guard lock(mutex_);
    for (auto it = indexes_.begin(); it != indexes_.end(); ++it) {
      if (it->first != file.version) continue;
      indexes_.splice(indexes_.begin(), indexes_, it);
      return it->second;
    }
  }
  auto index = std::make_shared<SampleIndex>(file);
  const std::lock_guard lock(mutex_);
  indexes_.emplace_front(file.version, index);
  if (indexes_.size() > kIndexesMax) indexes_.pop_back();
  return index;
}

SamplePage SampleStore::Read(const RunFile& file, const SampleQuery& query) {
  const std::shared_ptr<SampleIndex> index = IndexOf(file);
  const bool filtered = !query.filter.empty() || query.correct.has_value();
  if (filtered) index->Mark(file);
  SamplePage page;
  page.lines = index->lines();
  size_t bytes = 0;
  for (uint64_t line = query.cursor; line < index->lines(); ++line) {
    if (filtered && !index->Matches(line, query.filter, query.correct)) continue;
    if (page.samples.size() == query.limit || bytes > kPageBytesMax) {
      page.next = line;
      break;
    }
    const std::string text = index->Line(file, line);
    bytes += text.size();
    page.samples.push_back(SampleResource(text));
  }
  return page;
}

}  // namespace evald::api
