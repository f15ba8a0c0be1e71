#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// One mapping of a YAML file, read strictly: each key is asked for by name and type, and Finish()
/// refuses what nobody asked for. Every error is "file:line: key 'a.b': found ..., expected ...".
class YamlSection {
 public:
  /// `path` is the dotted path of the mapping, "" at the top.
  YamlSection(std::string file, YAML::Node node, std::string path);

  /// A whole file with overrides applied. Throws Error(kUsage) when it is not a YAML mapping.
  static YamlSection Load(const std::filesystem::path& file,
                          const std::vector<std::string>& overrides);

  /// The same of a text; `file` names it in errors.
  static YamlSection Parse(const std::string& text, const std::string& file,
                           const std::vector<std::string>& overrides);

  std::optional<std::string> String(const std::string& key);
  std::optional<int64_t> Integer(const std::string& key, int64_t low, int64_t high);
  std::optional<double> Number(const std::string& key, double low, double high);
  std::optional<bool> Boolean(const std::string& key);
  std::optional<uint64_t> Bytes(const std::string& key);  ///< 20GiB, 1.5 GB, 4096
  std::vector<std::string> Strings(const std::string& key);  ///< a list, or one string
  std::optional<YamlSection> Section(const std::string& key);
  /// The items of a list of mappings.
  std::vector<YamlSection> Sections(const std::string& key);
  /// The items of a list, each as it is.
  std::vector<YAML::Node> List(const std::string& key);
  /// Any value as JSON.
  Json Value(const std::string& key);
  /// All keys not asked for so far, as JSON; they count as asked for.
  Json Rest();

  /// Throws for the first key that nobody asked for, naming the nearest that could have been meant.
  void Finish();

  /// "file:line" of a node or key.
  std::string Where(const YAML::Node& node) const;
  std::string WhereKey(const std::string& key) const;
  std::string Where() const { return Where(node_); }  ///< of this mapping
  /// Throws Error(kUsage) "file:line: key 'a.b': <message>".
  [[noreturn]] void Refuse(const std::string& key, const std::string& message) const;

 private:
  YAML::Node Find(const std::string& key);
  std::string Dotted(const std::string& key) const;
  [[noreturn]] void RefuseType(const std::string& key, const YAML::Node& found,
                               const std::string& expected) const;

  std::string file_;
  YAML::Node node_;
  std::string path_;
  std::vector<std::string> known_;
};

/// A YAML value as JSON: plain scalars by YAML 1.2's core schema, quoted ones as strings.
Json YamlToJson(const YAML::Node& node);

}  // namespace evald
