#include "datasets/yaml_reader.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <optional>
#include <set>

#include "base/text.h"
#include "base/yaml_tabs.h"
#include "datasets/builtin_files.h"
#include "datasets/known_modules.h"
#include "datasets/quoted_scalar.h"
#include "datasets/task_yaml_cache.h"
#include "datasets/yaml_scalars.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kNodesMax = 200'000;
constexpr size_t kTextBytesMax = 16u << 20;  // of texts and keys, with aliases expanded
constexpr size_t kFileBytesMax = 4u << 20;
constexpr int kYamlDepthMax = 100;
constexpr size_t kKeyBytesShown = 100;
constexpr size_t kIncludesMax = 50;

// Turns a tree of yaml-cpp into JSON.
class Converter {
 public:
  Converter(const std::string& text, std::string file, std::string folder, const ReadRoots& roots,
            TaskYamlCache* cache, YamlMapping* out)
      : text_(text),
        file_(std::move(file)),
        folder_(std::move(folder)),
        roots_(roots),
        cache_(cache),
        out_(out) {}

  // `indent` is the column of the mapping or list around the node; -1 at the top.
  Json Convert(const YAML::Node& node, const std::string& pointer, int depth, int indent = -1) {
    at_ = pointer;
    if (++nodes_ > kNodesMax) {
      Fail(node, fmt::format("more than {} values, aliases written out", kNodesMax));
    }
    text_bytes_ += pointer.size() + (node.IsScalar() ? node.Scalar().size() : 0);
    if (text_bytes_ > kTextBytesMax) {
      Fail(node,
           fmt::format("more than {} of text, aliases written out", HumanBytes(kTextBytesMax)));
    }
    if (depth > kYamlDepthMax) Fail(node, fmt::format("nested more than {} deep", kYamlDepthMax));
    switch (node.Type()) {
      case YAML::NodeType::Scalar:
        return Scalar(node, indent);
      case YAML::NodeType::Sequence: {
        CheckTag(node, "!", "tag:yaml.org,2002:seq");
        Json list = Json::array();
        for (const YAML::Node& item : node) {
          const std::string at = pointer + "/" + std::to_string(list.size());
          out_->where[at] = Place(item.Mark());
          list.push_back(Convert(item, at, depth + 1, node.Mark().column));
        }
        return list;
      }
      case YAML::NodeType::Map:
        CheckTag(node, "!", "tag:yaml.org,2002:map");
        return Mapping(node, pointer, depth);
      default:
        return nullptr;
    }
  }

  std::string Place(const YAML::Mark& mark) const {
    return mark.is_null() ? file_ : fmt::format("{}:{}", file_, mark.line + 1);
  }

 private:
  [[noreturn]] void Fail(const YAML::Node& node, const std::string& message) const {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: {}{}", Place(node.Mark()), KeyInWords(), message));
  }

  // "key 'metric_list.0.metric': " for the value being read; "" at the top.
  std::string KeyInWords() const {
    if (at_.empty()) return "";
    std::string key = at_.substr(1);
    std::replace(key.begin(), key.end(), '/', '.');
    return fmt::format("key '{}': ", key.substr(0, kKeyBytesShown));
  }

  void CheckTag(const YAML::Node& node, const char* plain, const char* standard) const {
    const std::string& tag = node.Tag();
    if (!tag.empty() && tag != "?" && tag != plain && tag != standard) {
      Fail(node, fmt::format("the tag '{}' is not known", tag));
    }
  }

  Json Mapping(const YAML::Node& node, const std::string& pointer, int depth) {
    Json object = Json::object();
    Json merged = Json::object();
    auto& members = object.get_ref<Json::object_t&>();
    std::set<std::string> known;  // the members' keys; Json compares a key with all others
    for (const auto& item : node) {
      const Json key = Convert(item.first, pointer, depth + 1);
      const std::string name = key.is_string() ? key.get<std::string>() : key.dump();
      const std::string at = pointer + "/" + name;
      out_->where[at] = Place(item.first.Mark());
      Json value = Convert(item.second, at, depth + 1, item.first.Mark().column);
      if (key == "<<" && item.first.Tag() != "!") {
        Merge(item.second, value, &merged);
      } else {
        if (known.insert(name).second) {
          members.emplace_back(name, std::move(value));
          continue;
        }
        out_->doubled.insert(fmt::format("{}: the key '{}' is written twice; this one counts",
                                         Place(item.first.Mark()), name));
        object[name] = std::move(value);
      }
    }
    for (const auto& item : merged.items()) {
      if (known.insert(item.key()).second) members.emplace_back(item.key(), item.value());
    }
    return object;
  }

  void Merge(const YAML::Node& node, const Json& value, Json* merged) const {
    auto& members = merged->get_ref<Json::object_t&>();
    std::set<std::string> known;
    for (const auto& member : members) known.insert(member.first);
    const Json list = value.is_array() ? value : Json::array({value});
    for (const Json& map : list) {
      if (!map.is_object()) Fail(node, "'<<' needs a mapping");
      for (const auto& item : map.items()) {
        if (known.insert(item.key()).second) members.emplace_back(item.key(), item.value());
      }
    }
  }

  // The text of a scalar. `indent` is the column of the mapping or list around it.
  std::string TextOf(const YAML::Node& node, int indent) const {
    const YAML::Mark mark = node.Mark();
    if (mark.is_null() || mark.pos < 0) return node.Scalar();
    const auto at = static_cast<size_t>(mark.pos);
    if (auto quoted = ReadQuotedScalar(text_, at)) return *std::move(quoted);
    if (node.Tag().empty() || node.Tag() == "?") return node.Scalar();  // plain text
    if (auto block = ReadBlockScalar(text_, at, indent)) return *std::move(block);
    return node.Scalar();
  }

  // Whether the tag "!" is in the file; yaml-cpp also gives it to quoted text. With it, text is
  // read as if it were plain.
  bool IsWrittenTag(const YAML::Node& node) const {
    const YAML::Mark mark = node.Mark();
    return !mark.is_null() && mark.pos >= 0 &&
           text_.substr(static_cast<size_t>(mark.pos), 1) == "!";
  }

  Json Scalar(const YAML::Node& node, int indent) const {
    const std::string text = TextOf(node, indent);
    const std::string& tag = node.Tag();
    if (!IsUtf8(text)) Fail(node, "the text is not valid UTF-8");
    if (tag == "!function")
      return std::string(kFunctionTag) + Function(node, std::string(Trim(text)));
    if (tag == "tag:yaml.org,2002:str" || (tag == "!" && !IsWrittenTag(node))) return text;
    static const std::set<std::string> kTypes = {"null", "bool", "int", "float"};
    const std::string type = tag.substr(tag.rfind(':') + 1);
    const bool tagged = tag == "tag:yaml.org,2002:" + type && kTypes.count(type) != 0;
    if (!tagged && tag != "!") CheckTag(node, "", "");
    try {
      return tagged ? TaggedScalar(type, text) : PlainScalar(text);
    } catch (const Error& e) {
      Fail(node, e.message());
    }
  }

  std::string Function(const YAML::Node& node, const std::string& name) const {
    try {
      if (folder_.starts_with(kBuiltinPrefix))
        return BuiltinFunction(folder_.substr(kBuiltinPrefix.size()), name);
      const auto find = [&] { return FunctionBeside(folder_, name, roots_); };
      return cache_ == nullptr ? find() : cache_->Function(folder_, name, find);
    } catch (const Error& e) {
      Fail(node, e.message());
    }
  }

  const std::string& text_;
  std::string file_;
  std::string folder_;
  const ReadRoots& roots_;
  TaskYamlCache* cache_;
  YamlMapping* out_;
  std::string at_;  // the pointer of the value being read
  size_t nodes_ = 0;
  size_t text_bytes_ = 0;
};

// The folder in which a file's functions are looked for.
std::string FolderOf(const std::string& path) {
  if (!path.starts_with(kBuiltinPrefix))
    return fs::absolute(path).parent_path().lexically_normal().string();
  return std::string(kBuiltinPrefix) +
         fs::path(path.substr(kBuiltinPrefix.size())).parent_path().filename().string();
}

bool ReadTaskFile(const std::string& path, const ReadRoots& roots, std::string* text) {
  if (path.rfind(kBuiltinPrefix, 0) == 0) {
    std::string_view found;
    if (!FindBuiltinFile(path.substr(kBuiltinPrefix.size()), &found)) return false;
    *text = std::string(found);
    return true;
  }
  if (!roots.HasFile(path)) return false;
  *text = roots.Read(path, kFileBytesMax);
  return true;
}

// The places to look for `include` of `path`.
std::vector<std::string> IncludePlaces(const std::string& path, const std::string& include) {
  const bool builtin = path.rfind(kBuiltinPrefix, 0) == 0;
  const fs::path own(builtin ? path.substr(kBuiltinPrefix.size()) : path);
  const std::string beside = (own.parent_path() / include).lexically_normal().string();
  if (builtin) return {std::string(kBuiltinPrefix) + beside};
  if (fs::path(include).is_absolute()) return {include};
  return {beside, std::string(kBuiltinPrefix) + fs::path(include).lexically_normal().string()};
}

class Loader {
 public:
  Loader(const ReadRoots& roots, TaskYamlCache* cache) : roots_(roots), cache_(cache) {}

  YamlMapping Load(const std::string& path) {
    std::string text;
    if (!ReadTaskFile(path, roots_, &text)) {
      throw Error(ErrorKind::kInput, fmt::format("{}: there is no such file", path));
    }
    return Merge(path, ParseYaml(text, path, FolderOf(path), roots_, cache_));
  }

 private:
  YamlMapping Merge(const std::string& path, YamlMapping own) {
    if (!seen_.insert(path).second) {
      throw Error(ErrorKind::kInput, fmt::format("{}: the file includes itself", path));
    }
    if (seen_.size() > kIncludesMax) {
      throw Error(ErrorKind::kInput, fmt::format("{}: more than {} includes", path, kIncludesMax));
    }
    if (!own.value.contains("include")) return own;
    const std::string where = own.Where("/include");
    Json includes = own.value["include"];
    own.value.erase("include");
    if (!includes.is_array()) includes = Json::array({includes});
    YamlMapping merged;
    for (const Json& include : includes) {
      if (!include.is_string())
        throw Error(ErrorKind::kInput, where + ": include is not a file name");
      YamlMapping inner = LoadInclude(path, include.get<std::string>(), where);
      inner.value.erase("task_list");
      Overlay(std::move(inner), &merged);
    }
    Overlay(std::move(own), &merged);
    return merged;
  }

  YamlMapping LoadInclude(const std::string& path, const std::string& include,
                          const std::string& where) {
    const std::vector<std::string> places = IncludePlaces(path, include);
    for (const std::string& place : places) {
      if (auto read = ReadIncluded(place)) return Merge(place, *std::move(read));
    }
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the included file '{}' is not there", where, include),
                "looked at " + Join(places, ", "));
  }

  // A file without those that it includes; nothing if it is not there.
  std::optional<YamlMapping> ReadIncluded(const std::string& place) {
    if (cache_ != nullptr) {
      if (const auto known = cache_->Included(place)) return *known;
    }
    std::string text;
    if (!ReadTaskFile(place, roots_, &text)) return std::nullopt;
    YamlMapping read = ParseYaml(text, place, FolderOf(place), roots_, cache_);
    if (cache_ != nullptr) cache_->KeepIncluded(place, read);
    return read;
  }

  // dict.update: keys keep the place where they were first set.
  static void Overlay(YamlMapping&& over, YamlMapping* base) {
    for (auto& item : over.value.items()) {
      const std::string pointer = "/" + item.key();
      for (auto it = base->where.begin(); it != base->where.end();) {
        const bool inside = it->first == pointer || it->first.rfind(pointer + "/", 0) == 0;
        it = inside ? base->where.erase(it) : std::next(it);
      }
      base->value[item.key()] = std::move(item.value());
    }
    base->where.merge(over.where);
    base->doubled.merge(over.doubled);
  }

  const ReadRoots& roots_;
  TaskYamlCache* cache_;
  std::set<std::string> seen_;
};

}  // namespace

bool IsFunction(const Json& value, std::string* name) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (text.rfind(kFunctionTag, 0) != 0) return false;
  if (name != nullptr) *name = text.substr(kFunctionTag.size());
  return true;
}

std::string YamlMapping::Where(const std::string& pointer) const {
  for (std::string at = pointer; !at.empty(); at = at.substr(0, at.rfind('/'))) {
    const auto found = where.find(at);
    if (found != where.end()) return found->second;
  }
  return where.empty() ? "" : where.begin()->second;
}

bool FindBuiltinFile(std::string_view path, std::string_view* text) {
  for (size_t i = 0; i < kBuiltinFileCount; ++i) {
    if (kBuiltinFiles[i].path == path) {
      *text = kBuiltinFiles[i].text;
      return true;
    }
  }
  return false;
}

YamlMapping ParseYaml(const std::string& text, const std::string& file, const std::string& folder,
                      const ReadRoots& roots, TaskYamlCache* cache) {
  YamlMapping out;
  try {
    if (!IsUtf8(text) || text.find('\0') != std::string::npos) {
      throw Error(ErrorKind::kInput, file + ": the file is not text in UTF-8");
    }
    const std::vector<YAML::Node> documents = YAML::LoadAll(text);
    if (documents.size() > 1) {
      throw Error(ErrorKind::kInput, file + ": holds more than one YAML document, expected one");
    }
    const YAML::Node root = documents.empty() ? YAML::Node() : documents[0];
    if (!root.IsMap()) {
      throw Error(ErrorKind::kInput, file + ":1: a task file is a mapping of keys to values");
    }
    out.value = Converter(text, file, folder, roots, cache, &out).Convert(root, "", 0);
  } catch (const YAML::Exception& e) {
    const int line = e.mark.line + 1;
    const int tab = LineIndentedByTab(text, line - 1, line);
    throw Error(ErrorKind::kInput,
                e.mark.is_null() ? fmt::format("{}: broken YAML: {}", file, e.msg)
                                 : fmt::format("{}:{}: broken YAML: {}", file, tab > 0 ? tab : line,
                                               tab > 0 ? TabSentence(tab) : e.msg));
  }
  return out;
}

YamlMapping LoadTaskYaml(const std::string& path, const ReadRoots& roots, TaskYamlCache* cache) {
  return Loader(roots, cache).Load(path);
}

}  // namespace evald
