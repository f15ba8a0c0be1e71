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

/// What a `!function` value is kept as: the tag and the name that datasets/known_modules.h gives
/// it.
inline constexpr std::string_view kFunctionTag = "!function ";

/// Whether `value` stands for a `!function`; gives its full name without the tag.
bool IsFunction(const Json& value, std::string* name = nullptr);

/// A YAML mapping as JSON, and where each of its keys was written.
struct YamlMapping {
  Json value = Json::object();
  std::map<std::string, std::string> where;  ///< JSON pointer of a key ("/a/0/b") -> "file:line"

  std::set<std::string> doubled;  ///< a sentence for each key that is written twice

  /// The place of `pointer`, or of the nearest key around it that is known.
  std::string Where(const std::string& pointer) const;
};

/// Reads one YAML text as PyYAML's safe loader does (YAML 1.1: yes and on are booleans, 1e5 is
/// text), with lm-evaluation-harness's tag `!function`. `folder` is the absolute path of the folder
/// that the file lies in, or "builtin:" and its name below datasets/tasks; functions are looked for
/// there. Throws Error(kInput) "file:line: ..." for broken YAML, a value that is not a mapping, an
/// unknown tag, a date, and more than 200,000 nodes or 16 MiB of text once aliases are written out.
/// Of a doubled key the last counts, as in PyYAML; `doubled` says so.
YamlMapping ParseYaml(const std::string& text, const std::string& file, const std::string& folder,
                      const ReadRoots& roots);

/// The name under which a built-in file is opened: "builtin:" + its path under datasets/tasks.
inline constexpr std::string_view kBuiltinPrefix = "builtin:";

/// Reads a task file and the files it includes: what a file says itself wins over what it includes,
/// a later include over an earlier one (lm_eval/tasks/_yaml_loader.py, 0.4.13). An include is
/// looked for beside the file that includes it, then among the built-in ones. All of them are read
/// below `roots`. Throws Error(kInput).
YamlMapping LoadTaskYaml(const std::string& path, const ReadRoots& roots = {});

}  // namespace evald
