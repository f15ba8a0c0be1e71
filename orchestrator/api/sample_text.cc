// Lines of samples_<task>.jsonl, which may be as long as all answers to a document. None of them is
// held as a whole. The names are those of lm-evaluation-harness's samples; see docs/formats.md.
#include "orchestrator/api/sample_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::api {
namespace {

constexpr uint64_t kShortBytes = 4096;        // of a value that decides something
constexpr uint64_t kNamesBytesMax = 1 << 16;  // of a sample's names of metrics
constexpr size_t kPartsMax = 40'000;          // of one answer

constexpr const char* kWhere = "a line of a samples file";

std::optional<bool> Correct(JsonWalk* walk, TextSpan value) {
  if (value.bytes() > kShortBytes) return std::nullopt;
  const Json parsed = walk->Parse(value, kShortBytes);
  if (parsed == true || (parsed.is_number() && parsed == 1)) return true;
  if (parsed == false || (parsed.is_number() && parsed == 0)) return false;
  return std::nullopt;
}

// The names in the list `metrics`.
std::vector<std::string> NamesIn(JsonWalk* walk, TextSpan metrics) {
  std::vector<std::string> names;
  const Json list = walk->Parse(metrics, kNamesBytesMax);
  for (const Json& name : list.is_array() ? list : Json::array()) {
    if (!name.is_string())
      throw Error(ErrorKind::kInput,
                  fmt::format("{} is no sample: a metric without a name", kWhere));
    names.push_back(name.get<std::string>());
  }
  return names;
}

// The outermost members of a line.
class Sample {
 public:
  Sample(JsonWalk* walk, TextSpan line) {
    walk->Members(walk->Value(line), [&](const std::string& key, TextSpan value) {
      members_.emplace_back(key, value);
    });
  }

  // Nothing if there is no such member; the last one if there are several.
  std::optional<TextSpan> Find(const std::string& key) const {
    for (auto it = members_.rbegin(); it != members_.rend(); ++it) {
      if (it->first == key) return it->second;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::pair<std::string, TextSpan>> members_;
};

class ResourceWriter {
 public:
  ResourceWriter(JsonWalk* walk, TextSpan line, PiecedText* out)
      : walk_(*walk), sample_(walk, line), out_(*out) {}

  void Write() {
    Member("{\"doc_id\":", "doc_id");
    Member(",\"filter\":", "filter");
    Scores();
    Prompts();
    Member(",\"answers\":", "resps", "[]");
    Member(",\"thinking\":", "evald_thinking");
    Member(",\"truncated\":", "evald_truncated");
    Member(",\"detail\":", "evald_detail");
    Member(",\"filtered\":", "filtered_resps");
    Member(",\"target\":", "target");
    Member(",\"doc\":", "doc");
    out_.Add("}");
  }

 private:
  void Member(std::string_view name, const char* key, std::string_view absent = "null") {
    out_.Add(name);
    if (const auto value = sample_.Find(key)) {
      out_.Add(*value);
    } else {
      out_.Add(absent);
    }
  }

  void Scores() {
    const auto metrics = sample_.Find("metrics");
    const std::vector<std::string> names =
        metrics ? NamesIn(&walk_, *metrics) : std::vector<std::string>();
    const auto first = names.empty() ? std::nullopt : sample_.Find(names[0]);
    const std::optional<bool> correct = first ? Correct(&walk_, *first) : std::nullopt;
    out_.Add(std::string(",\"correct\":") + (correct ? (*correct ? "true" : "false") : "null"));
    out_.Add(",\"scores\":{");
    for (size_t i = 0; i < names.size(); ++i)
      Member((i == 0 ? "" : ",") + ToLine(Json(names[i])) + ":", names[i].c_str());
    out_.Add("}");
  }

  void Prompts() {
    std::optional<TextSpan> prompt;
    std::vector<TextSpan> continuations;
    if (const auto arguments = sample_.Find("arguments")) {
      walk_.Members(*arguments, [&](const std::string&, TextSpan argument) {
        walk_.Members(argument, [&](const std::string& key, TextSpan value) {
          if (key == "arg_0" && !prompt) prompt = value;
          if (key != "arg_1" || walk_.FirstOf(value) != '"') return;
          continuations.push_back(value);
          if (continuations.size() > kPartsMax / 2)
            throw Error(ErrorKind::kInput, fmt::format("{} has too many requests", kWhere));
        });
      });
    }
    out_.Add(",\"prompt\":");
    if (prompt) {
      out_.Add(*prompt);
    } else {
      out_.Add("null");
    }
    out_.Add(",\"continuations\":[");
    for (size_t i = 0; i < continuations.size(); ++i) {
      if (i > 0) out_.Add(",");
      out_.Add(continuations[i]);
    }
    out_.Add("]");
  }

  JsonWalk& walk_;
  Sample sample_;
  PiecedText& out_;
};

}  // namespace

TextInFile TextOf(const RunFile& file, const Stopped& stopped) {
  const auto check = [stopped] {
    if (stopped && stopped())
      throw Error(ErrorKind::kInfrastructure, "nobody waits for this answer any more");
  };
  return {file.fd, file.bytes, "a samples file", check};
}

void PiecedText::Add(std::string_view text) {
  bytes_ += text.size();
  // Neighbours are one part
  if (parts_.empty() || parts_.back().in_file) parts_.push_back({texts_.size(), 0, 0});
  texts_ += text;
  parts_.back().bytes += text.size();
}

void PiecedText::Add(TextSpan part_of_file) {
  bytes_ += part_of_file.bytes();
  parts_.push_back({part_of_file.begin, part_of_file.bytes(), 1});
}

std::string PiecedText::Next(size_t most) {
  std::string text;
  while (text.size() < most && part_ < parts_.size()) {
    const Part& part = parts_[part_];
    const size_t bytes = std::min<uint64_t>(most - text.size(), part.bytes - offset_);
    if (part.in_file) {
      const std::string read = ReadAt(file_->fd, part.begin + offset_, bytes);
      if (read.size() < bytes) return "";  // the file has become shorter
      text += read;
    } else {
      text += std::string_view(texts_).substr(part.begin + offset_, bytes);
    }
    offset_ += bytes;
    if (offset_ < part.bytes) break;
    ++part_;
    offset_ = 0;
  }
  return text;
}

SampleMark MarkOf(LongText* text, TextSpan line) {
  JsonWalk walk(text, kWhere);
  const Sample sample(&walk, line);
  SampleMark mark;
  if (const auto doc = sample.Find("doc_id"); doc && doc->bytes() <= kShortBytes) {
    const Json id = walk.Parse(*doc, kShortBytes);
    if (id.is_number_integer()) mark.doc_id = id.get<int64_t>();
  }
  if (const auto filter = sample.Find("filter"); filter && walk.FirstOf(*filter) == '"')
    mark.filter = walk.Parse(*filter, kShortBytes).get<std::string>();
  if (const auto metrics = sample.Find("metrics")) {
    const std::vector<std::string> names = NamesIn(&walk, *metrics);
    const auto value = names.empty() ? std::nullopt : sample.Find(names[0]);
    if (value) mark.correct = Correct(&walk, *value);
  }
  return mark;
}

void AddSample(LongText* text, TextSpan line, PiecedText* out) {
  JsonWalk walk(text, kWhere);
  ResourceWriter(&walk, line, out).Write();
}

}  // namespace evald::api
