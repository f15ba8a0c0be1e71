#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/read_roots.h"
#include "evald/json.h"

namespace evald {

class TaskYamlCache;

/// The prefix of a `!function` value, before the name that datasets/known_modules.h gives it.
inline constexpr std::string_view kFunctionTag = "!function ";

/// Whether `value` is a `!function`. Sets `name` to its full name without the tag.
bool IsFunction(const Json& value, std::string* name = nullptr);

/// A YAML mapping as JSON, with the place of each key.
struct YamlMapping {
  Json value = Json::object();
  std::map<std::string, std::string> where;  ///< JSON pointer of a key ("/a/0/b") -> "file:line"

  std::set<std::string> doubled;  ///< a sentence for each key that is written twice

  /// The place of `pointer`, or of the nearest known key around it.
  std::string Where(const std::string& pointer) const;
};

/// Reads one YAML text like PyYAML's safe loader (YAML 1.1: yes and on are booleans, 1e5 is text),
/// with lm-evaluation-harness's tag `!function`. `folder`, in which functions are looked for, is
/// the absolute path of the file's folder, or "builtin:" and its name below datasets/tasks. Throws
/// Error(kInput) "file:line: ..." for broken YAML, a value that is not a mapping, an unknown tag, a
/// date, and for more than 200,000 nodes or 16 MiB of text once aliases are expanded. If a key is
/// doubled, the last one counts, as in PyYAML; `doubled` says so.
YamlMapping ParseYaml(const std::string& text, const std::string& file, const std::string& folder,
                      const ReadRoots& roots, TaskYamlCache* cache = nullptr);

/// The prefix of a built-in file's name, before its path under datasets/tasks.
inline constexpr std::string_view kBuiltinPrefix = "builtin:";

/// Reads a task file and the files that it includes. A file's own keys win over those of its
/// includes, and a later include wins over an earlier one (lm_eval/tasks/_yaml_loader.py, 0.4.13).
/// An include is looked for beside the file that includes it, then among the built-in files. All of
/// them are read below `roots`. Throws Error(kInput).
/// With `cache`, included files are read once for many task files.
YamlMapping LoadTaskYaml(const std::string& path, const ReadRoots& roots = {},
                         TaskYamlCache* cache = nullptr);

}  // namespace evald
