#include "orchestrator/config/yaml_section.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>

#include "base/file.h"
#include "base/text.h"
#include "base/yaml_tabs.h"
#include "evald/error.h"
#include "orchestrator/config/yaml_json.h"

namespace evald {
namespace {

constexpr size_t kShownBytes = 60;

std::string Describe(const YAML::Node& node) {
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return fmt::format("'{}'", PrintableLine(Shortened(node.Scalar(), kShownBytes)));
    case YAML::NodeType::Sequence:
      return fmt::format("a list of {}", node.size());
    case YAML::NodeType::Map:
      return "a mapping";
    default:
      return "nothing";
  }
}

// The reason why a text is not YAML: bytes that are not UTF-8, or a control character. "" if
// nothing does.
std::string WrongWithText(std::string_view text) {
  if (!IsUtf8(text)) return "is not text in UTF-8";
  const auto control = std::find_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r') ||
           c == 0x7F;
  });
  if (control == text.end()) return "";
  return fmt::format("holds the control character {}, which YAML forbids",
                     PrintableLine(std::string(1, *control)));
}

void CheckText(const std::string& text, const std::string& file) {
  if (WrongWithText(text).empty()) return;
  size_t number = 0;
  for (const std::string& line : Split(text, '\n')) {
    ++number;
    const std::string wrong = WrongWithText(line);
    if (wrong.empty()) continue;
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{}:{}: the line '{}' {}", file, number,
                    PrintableLine(Shortened(line, kShownBytes)), wrong),
        "save the file in UTF-8; in double quotes, an escape such as \\x1b stands for a character");
  }
}

// ", in the line '...'", for the faults that the parser names by a word or two.
std::string InLine(const std::string& text, int line) {
  const std::vector<std::string> lines = Split(text, '\n');
  if (line < 1 || static_cast<size_t>(line) > lines.size()) return "";
  const std::string shown(Trim(lines[static_cast<size_t>(line) - 1]));
  return shown.empty()
             ? ""
             : fmt::format(", in the line '{}'", PrintableLine(Shortened(shown, kShownBytes)));
}

// Sets the value in the tree at keys[at...], making mappings on the way. "*" is every item of a
// list. A task that is only a name becomes a mapping; a command has none of the settings of tasks.
void Assign(YAML::Node node, const std::vector<std::string>& keys, size_t at,
            const YAML::Node& value, const std::string& assignment) {
  const std::string& key = keys[at];
  if (key == "*" && node.IsSequence() && at + 1 < keys.size()) {
    for (size_t i = 0; i < node.size(); ++i) {
      if (node[i].IsScalar()) {
        YAML::Node task(YAML::NodeType::Map);
        task["task"] = node[i].Scalar();
        node[i] = task;
      }
      if (!node[i].IsMap() || !node[i]["command"]) Assign(node[i], keys, at + 1, value, assignment);
    }
    return;
  }
  if (!node.IsMap()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--set {}: '{}' lies in a value that is not a mapping", assignment, key));
  }
  if (at + 1 == keys.size()) {
    node[key] = value;
    return;
  }
  if (!node[key] || node[key].IsNull()) node[key] = YAML::Node(YAML::NodeType::Map);
  Assign(node[key], keys, at + 1, value, assignment);
}

// Sets `key.path=value` in the tree.
void ApplyOverride(YAML::Node root, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--set {}: expected key.path=value, for example workers.count=2", assignment));
  }
  if (const std::string wrong = WrongWithText(assignment); !wrong.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--set {}: the assignment {}", PrintableLine(assignment), wrong),
                "name files and folders by paths in UTF-8 without control characters");
  }
  YAML::Node value;
  try {
    value = YAML::Load(assignment.substr(equals + 1));
  } catch (const YAML::Exception& e) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--set {}: the value is not YAML: {}", assignment, e.msg));
  }
  Assign(root, Split(assignment.substr(0, equals), '.'), 0, value, assignment);
}

}  // namespace

namespace {

// "tasks[2].limit" as --set names it for all items: "tasks.*.limit".
std::string WithStars(const std::string& dotted) {
  std::string stars;
  for (size_t i = 0; i < dotted.size(); ++i) {
    if (dotted[i] != '[') {
      stars += dotted[i];
      continue;
    }
    stars += ".*";
    i = std::min(dotted.find(']', i), dotted.size());
  }
  return stars;
}

}  // namespace

YamlSection::YamlSection(std::string file, const YAML::Node& node, std::string path)
    : YamlSection(std::move(file), node, std::move(path), std::make_shared<Context>()) {}

YamlSection::YamlSection(std::string file, const YAML::Node& node, std::string path,
                         std::shared_ptr<Context> context)
    : file_(std::move(file)), node_(node), path_(std::move(path)), context_(std::move(context)) {
  const std::string assigned = Assignment(path_);
  if (!node_.IsMap()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{}: {}found {}, expected a mapping of keys to values{}",
                    assigned.empty() ? Where(node_) : assigned,
                    path_.empty() ? "" : "key '" + path_ + "': ", Describe(node_), TabHint()));
  }
  std::vector<std::string> seen;
  for (const auto& entry : node_) {
    if (!entry.first.IsScalar()) {
      throw Error(ErrorKind::kUsage, fmt::format("{}: a key must be a word",
                                                 assigned.empty() ? Where(entry.first) : assigned));
    }
    const std::string& key = entry.first.Scalar();
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      Keep(Error(ErrorKind::kUsage,
                 fmt::format("{}: key '{}' is given twice",
                             assigned.empty() ? Where(entry.first) : assigned, Dotted(key))));
    }
    seen.push_back(key);
  }
}

constexpr uint64_t kFileBytesMax = 64u << 20;

YamlSection YamlSection::Load(const std::filesystem::path& file,
                              const std::vector<std::string>& overrides, const Typed& typed) {
  std::string text;
  try {
    const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    text = fd ? ReadFile(fd, file, kFileBytesMax) : ReadFile(file);  // the latter has the error
  } catch (const Error& e) {
    throw Error(ErrorKind::kUsage, e.message(), e.remedy());
  }
  return Parse(text, file.string(), overrides, typed);
}

YamlSection YamlSection::Parse(const std::string& text, const std::string& file,
                               const std::vector<std::string>& overrides, const Typed& typed) {
  CheckText(text, file);
  YAML::Node root;
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (!documents.empty()) root = documents[0];
    if (documents.size() > 1) {
      const YAML::Mark mark = documents[1].Mark();
      throw Error(
          ErrorKind::kUsage,
          fmt::format("{}{}: a second YAML document begins, expected one in the file", file,
                      mark.is_null() ? "" : fmt::format(":{}", mark.line + 1)),
          "take the line '---' between them away, or put the second one into a file of its own");
    }
  } catch (const YAML::Exception& e) {
    const int line = e.mark.line + 1;
    const int tab = LineIndentedByTab(text, line - 1, line);
    throw Error(ErrorKind::kUsage,
                fmt::format("{}:{}: not YAML: {}", file, tab > 0 ? tab : line,
                            tab > 0 ? TabSentence(tab) : e.msg + InLine(text, line)));
  }
  auto context = std::make_shared<Context>();
  context->tab_line = LineIndentedByTab(text, 1, INT_MAX);
  if (root.IsMap()) {
    for (const std::string& assignment : overrides) {
      ApplyOverride(root, assignment);
      const auto as_typed = typed.find(assignment);
      context->overrides[assignment.substr(0, assignment.find('='))] =
          as_typed == typed.end() ? "--set " + assignment : as_typed->second;
    }
  }
  return YamlSection(file, root, "", std::move(context));
}

std::string YamlSection::Where(const YAML::Node& node) const {
  const YAML::Mark mark = node.Mark();
  return mark.is_null() ? file_ : fmt::format("{}:{}", file_, mark.line + 1);
}

std::string YamlSection::Assignment(const std::string& dotted) const {
  std::string at = dotted;
  while (!at.empty()) {
    for (const std::string& key : {at, WithStars(at)}) {
      const auto found = context_->overrides.find(key);
      if (found != context_->overrides.end()) return found->second;
    }
    const size_t cut = at.find_last_of(".[");
    at.resize(cut == std::string::npos ? 0 : cut);
  }
  return "";
}

std::string YamlSection::WhereIn(const std::string& key, const YAML::Node& node) const {
  const std::string assigned = Assignment(Dotted(key));
  return assigned.empty() ? Where(node) : assigned;
}

// A mapping that --set made on the way to its key, and that holds nothing of the file, has no place
// of its own. Any assignment below it serves as its place.
std::string YamlSection::WhereKey(const std::string& key) const {
  const std::string dotted = Dotted(key);
  if (std::string assigned = Assignment(dotted); !assigned.empty()) return assigned;
  const auto below = context_->overrides.lower_bound(dotted + ".");
  if (below != context_->overrides.end() && below->first.starts_with(dotted + ".")) {
    for (const auto& entry : node_) {
      if (entry.first.Scalar() == key && entry.first.Mark().is_null()) return below->second;
    }
  }
  for (const auto& entry : node_) {
    if (entry.first.Scalar() == key) return Where(entry.first);
  }
  return Where(node_);
}

std::string YamlSection::Dotted(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

std::string YamlSection::Place(const std::string& key) const {
  return fmt::format("{}: key '{}'", WhereKey(key), Dotted(key));
}

// An assignment to the items of a list is one mistake, however many items there are.
std::string YamlSection::Identity(const std::string& key) const {
  const std::string dotted = Dotted(key), stars = WithStars(dotted);
  return context_->overrides.contains(stars) ? stars : dotted;
}

void YamlSection::KeepRefusal(const std::string& key, const std::string& message) const {
  if (context_->refused.insert(Identity(key)).second)
    Keep(Error(ErrorKind::kUsage, fmt::format("{}: {}", Place(key), message)));
}

bool YamlSection::IsRefused(const std::string& key) const {
  return context_->refused.contains(Identity(key));
}

void YamlSection::Throw() const {
  ThrowProblems();
  throw Error(ErrorKind::kInternal, "an error of a file was not kept");
}

void YamlSection::Refuse(const std::string& key, const std::string& message) const {
  KeepRefusal(key, message);
  Throw();
}

void YamlSection::KeepType(const std::string& key, const YAML::Node& found,
                           const std::string& expected) const {
  KeepRefusal(key, fmt::format("found {}, expected {}{}", Describe(found), expected, TabHint()));
}

YAML::Node YamlSection::Find(const std::string& key) {
  known_.push_back(key);
  for (const auto& entry : node_) {
    if (entry.first.Scalar() == key && !entry.second.IsNull()) return entry.second;
  }
  return YAML::Node(YAML::NodeType::Undefined);
}

std::optional<std::string> YamlSection::String(const std::string& key) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return std::nullopt;
  if (node.IsScalar()) return node.Scalar();
  KeepType(key, node, "a string");
  return std::nullopt;
}

std::optional<int64_t> YamlSection::Integer(const std::string& key, int64_t low, int64_t high) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return std::nullopt;
  const Json value = YamlToJson(node);
  const std::string expected = high == INT64_MAX
                                   ? fmt::format("an integer of at least {}", low)
                                   : fmt::format("an integer from {} to {}", low, high);
  if (value.is_number_integer() && value >= low && value <= high) return value.get<int64_t>();
  KeepType(key, node, expected);
  return std::nullopt;
}

std::optional<double> YamlSection::Number(const std::string& key, double low, double high) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return std::nullopt;
  const Json value = YamlToJson(node);
  if (value.is_number() && value >= low && value <= high) return value.get<double>();
  KeepType(key, node, fmt::format("a number from {} to {}", low, high));
  return std::nullopt;
}

std::optional<bool> YamlSection::Boolean(const std::string& key) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return std::nullopt;
  const Json value = YamlToJson(node);
  if (value.is_boolean()) return value.get<bool>();
  KeepType(key, node, "true or false");
  return std::nullopt;
}

std::optional<uint64_t> YamlSection::Bytes(const std::string& key) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return std::nullopt;
  try {
    if (node.IsScalar()) return ParseBytes(node.Scalar());
    KeepType(key, node, "a size such as 20GiB");
  } catch (const Error& e) {
    KeepRefusal(key, e.message());
  }
  return std::nullopt;
}

std::optional<double> YamlSection::Duration(const std::string& key, double low_s, double high_s,
                                            Unit unit) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return std::nullopt;
  try {
    if (!node.IsScalar()) {
      KeepType(key, node, "a duration such as 5min");
      return std::nullopt;
    }
    const double seconds = ParseSeconds(node.Scalar());
    const bool plain = node.Scalar().find_first_not_of("0123456789. ") == std::string::npos;
    const bool lacks = plain && unit == Unit::kNeeded;
    if (!lacks && seconds >= low_s && seconds <= high_s) return seconds;
    KeepRefusal(key, lacks ? fmt::format("found '{0}', expected a duration with its unit, such as "
                                         "{0}min",
                                         node.Scalar())
                           : fmt::format("found '{}', expected from {} to {}", node.Scalar(),
                                         HumanSeconds(low_s), HumanSeconds(high_s)));
  } catch (const Error& e) {
    KeepRefusal(key, e.message());
  }
  return std::nullopt;
}

std::vector<std::string> YamlSection::Strings(const std::string& key) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return {};
  if (node.IsScalar()) return {node.Scalar()};
  std::vector<std::string> strings;
  if (!node.IsSequence()) KeepType(key, node, "a list of strings");
  for (const YAML::Node& item : node.IsSequence() ? node : YAML::Node()) {
    if (!item.IsScalar()) {
      KeepType(key, item, "a list of strings");
      return {};
    }
    strings.push_back(item.Scalar());
  }
  return strings;
}

bool YamlSection::Has(const std::string& key) { return Find(key).IsDefined(); }

std::optional<YamlSection> YamlSection::Section(const std::string& key) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return std::nullopt;
  if (!node.IsMap()) {
    KeepType(key, node, "a mapping of keys to values");
    return std::nullopt;
  }
  return YamlSection(file_, node, Dotted(key), context_);
}

std::vector<YAML::Node> YamlSection::List(const std::string& key) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return {};
  if (!node.IsSequence()) {
    KeepType(key, node, "a list");
    return {};
  }
  return {node.begin(), node.end()};
}

std::vector<YamlSection> YamlSection::Sections(const std::string& key) {
  std::vector<YamlSection> sections;
  size_t index = 0;
  for (const YAML::Node& item : List(key))
    Try([&] { sections.push_back(Item(key, item, index++)); });
  return sections;
}

YamlSection YamlSection::Item(const std::string& key, const YAML::Node& item, size_t index) const {
  return YamlSection(file_, item, fmt::format("{}[{}]", Dotted(key), index), context_);
}

Json YamlSection::Value(const std::string& key) {
  const YAML::Node node = Find(key);
  if (!node.IsDefined()) return nullptr;
  try {
    return YamlToJson(node);
  } catch (const Error& e) {
    KeepRefusal(key, e.message());
  }
  return nullptr;
}

Json YamlSection::Rest() {
  Json rest = Json::object();
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) rest[key] = Value(key);
  }
  return rest;
}

bool YamlSection::IsKnown(const std::string& key) const {
  return std::find(known_.begin(), known_.end(), key) != known_.end();
}

std::string YamlSection::TabHint() const {
  return context_->tab_line == 0 ? "" : "; " + TabSentence(context_->tab_line);
}

std::string YamlSection::HintFor(const std::string& key) const {
  return context_->hint ? context_->hint(path_, key) : "";
}

void YamlSection::KeepUnknown(const std::string& key, const std::string& hint) const {
  context_->unknown.insert(path_);
  if (!context_->refused.insert(Identity(key)).second) return;
  Keep(Error(ErrorKind::kUsage,
             fmt::format("{}: unknown key '{}'{}", WhereKey(key), Dotted(key), hint)));
}

void YamlSection::Finish() {
  for (const auto& entry : node_) {
    const std::string& key = entry.first.Scalar();
    if (IsKnown(key)) continue;
    std::string hint = HintFor(key);
    const std::string near = NearestName(key, known_);
    if (hint.empty())
      hint = Suggestion(key, known_);
    else if (!near.empty())
      hint += fmt::format(", or did you mean '{}'?", near);
    if (hint.empty()) hint = "; valid keys here: " + Join(known_, ", ");
    KeepUnknown(key, hint);
  }
  if (path_.empty()) ThrowProblems();
}

void YamlSection::RefuseAbsent(const std::string& key, const std::string& what) const {
  if (context_->unknown.contains(path_)) Throw();
  for (const auto& entry : node_) {
    const std::string& found = entry.first.Scalar();
    if (IsKnown(found)) continue;
    std::string hint = HintFor(found);
    if (hint.empty()) hint = Suggestion(found, {key});
    if (hint.empty()) continue;
    KeepUnknown(found, hint);
    Throw();
  }
  Refuse(key, fmt::format("is {}{}", what, TabHint()));
}

}  // namespace evald
