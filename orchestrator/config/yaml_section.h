#pragma once

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/problems.h"
#include "evald/json.h"

namespace evald {

/// The text after "unknown key 'a.b'" for a key in the wrong mapping or with another name: "; 'b'
/// belongs to 'c'". "" for a key that is valid in this mapping, and if there is no hint.
using KeyHint = std::function<std::string(const std::string& section, const std::string& key)>;

/// One mapping of a YAML file, read strictly. Each key is read by name and type, and Finish()
/// refuses keys that were not read. Every error is "file:line: key 'a.b': found ..., expected ...".
/// For values given on the command line, "--set a.b=value" takes the place of file and line.
///
/// All problems of a file are reported together. A value of another type and an unknown key are
/// kept, and reading goes on as if the key were absent. Finish() of the whole file throws what was
/// kept. Refuse() throws at once, with all that was kept; Try() takes the error and goes on.
class YamlSection {
 public:
  /// `path` is the dotted path of the mapping, "" at the top.
  YamlSection(std::string file, const YAML::Node& node, std::string path);

  /// The way in which an override was given, if it was not by --set: "--limit 10".
  using Typed = std::map<std::string, std::string>;

  /// A whole file, with overrides applied. Throws Error(kUsage) if it is not a YAML mapping.
  static YamlSection Load(const std::filesystem::path& file,
                          const std::vector<std::string>& overrides, const Typed& typed = {});

  /// The same for a text; `file` names it in errors.
  static YamlSection Parse(const std::string& text, const std::string& file,
                           const std::vector<std::string>& overrides, const Typed& typed = {});

  std::optional<std::string> String(const std::string& key);
  std::optional<int64_t> Integer(const std::string& key, int64_t low, int64_t high);
  std::optional<double> Number(const std::string& key, double low, double high);
  std::optional<bool> Boolean(const std::string& key);
  std::optional<uint64_t> Bytes(const std::string& key);  ///< 20GiB, 1.5 GB, 4096
  enum class Unit { kMayLack, kNeeded };  ///< of a duration; a number without one is of seconds
  /// Seconds: 90, 5min, 2h
  std::optional<double> Duration(const std::string& key, double low_s, double high_s,
                                 Unit unit = Unit::kMayLack);
  std::vector<std::string> Strings(const std::string& key);  ///< a list, or one string
  bool Has(const std::string& key);                          ///< whether the key has a value
  std::optional<YamlSection> Section(const std::string& key);
  /// The items of a list of mappings.
  std::vector<YamlSection> Sections(const std::string& key);
  /// Item number `index` of the list `key`, a mapping.
  YamlSection Item(const std::string& key, const YAML::Node& item, size_t index) const;
  /// The items of a list, unconverted.
  std::vector<YAML::Node> List(const std::string& key);
  /// Any value as JSON.
  Json Value(const std::string& key);
  /// All keys not read so far, as JSON. They then count as read.
  Json Rest();

  /// Keeps an error for each key that was not read, with the hint, or else with the nearest key
  /// that may be meant. For the whole file, throws all errors that were kept.
  void Finish();

  /// Calls `work`, which reads a part of the file, and keeps the error that it throws. False if the
  /// part has errors, which leave its values unfit for further checks.
  template <typename Work>
  bool Try(Work work) {
    const size_t before = context_->problems.size();
    context_->problems.Try(work);
    return context_->problems.size() == before;
  }
  /// Throws all errors that were kept, of the whole file.
  void ThrowProblems() const { context_->problems.ThrowIfAny(); }
  /// Keeps an error.
  void Keep(const Error& error) const { context_->problems.Add(error); }
  /// Keeps the error that Refuse() would throw.
  void KeepRefusal(const std::string& key, const std::string& message) const;
  /// Whether there is an error about the key, so that its value must count as given.
  bool IsRefused(const std::string& key) const;

  /// Sets the hint for this mapping and all mappings in it.
  void SetHint(KeyHint hint) { context_->hint = std::move(hint); }

  /// The place of a key: "file:line" or "--set a.b=value".
  std::string WhereKey(const std::string& key) const;
  /// The place of a key and its name, the beginning of an error: "file:line: key 'a.b'".
  std::string Place(const std::string& key) const;
  /// The place of a node within the value of `key`.
  std::string WhereIn(const std::string& key, const YAML::Node& node) const;
  std::string Where() const { return Where(node_); }  ///< of this mapping
  /// Throws Error(kUsage) "file:line: key 'a.b': <message>", with all errors that were kept. A
  /// second error about the same key is left out: it follows from the first.
  [[noreturn]] void Refuse(const std::string& key, const std::string& message) const;
  /// Throws for an absent key: names the key that seems to be meant for it, else says "is <what>".
  /// A key that Finish() did not know counts as the one that is meant.
  [[noreturn]] void RefuseAbsent(const std::string& key, const std::string& what) const;

 private:
  /// Assignments of --set by their dotted keys.
  using Overrides = std::map<std::string, std::string>;

  // Shared by the mappings of a file.
  struct Context {
    Overrides overrides;
    KeyHint hint;
    /// First line indented by a tab, whose value may not be the one meant; 0: none
    int tab_line = 0;
    ProblemList problems;
    std::set<std::string> refused;  ///< keys that have an error (Identity)
    std::set<std::string> unknown;  ///< dotted mappings that have an unknown key
  };

  YamlSection(std::string file, const YAML::Node& node, std::string path,
              std::shared_ptr<Context> context);

  bool IsKnown(const std::string& key) const;
  std::string HintFor(const std::string& key) const;
  std::string TabHint() const;

  std::string Where(const YAML::Node& node) const;
  /// The assignment that gave this key or a mapping around it, or "".
  std::string Assignment(const std::string& dotted) const;
  YAML::Node Find(const std::string& key);
  std::string Dotted(const std::string& key) const;
  /// The dotted key; for a key that an assignment gave to all items of a list "tasks.*.limit".
  std::string Identity(const std::string& key) const;
  void KeepType(const std::string& key, const YAML::Node& found, const std::string& expected) const;
  void KeepUnknown(const std::string& key, const std::string& hint) const;
  [[noreturn]] void Throw() const;

  std::string file_;
  YAML::Node node_;
  std::string path_;
  std::shared_ptr<Context> context_;
  std::vector<std::string> known_;
};

}  // namespace evald
