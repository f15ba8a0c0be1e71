#include "datasets/known_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kModuleBytesMax = 4u << 20;
constexpr std::string_view kPackage = "lm_eval.tasks.";

struct KnownModule {
  const char* sha256;
  const char* module;
  std::vector<std::string_view> functions;  ///< functions that do what evald has built in
};

// The utils.py of lm_eval's releases on PyPI. A release is not listed for a function that does
// something else there: build_predictions_instruct of 0.4.9 cuts at the last code fence, and
// pass_at_1 of 0.4.8 takes all programs of a document as candidates of one.
const std::vector<KnownModule>& KnownModules() {
  static const std::vector<KnownModule> kAll = {
      {"5f77adbf75b4342a6113fea30168ea57b4e5c3877ffd3b4942cb338b3edb2c95",  // 0.4.9.2 to 0.4.13
       "humaneval/utils",
       {"pass_at_k", "build_predictions", "build_predictions_instruct"}},
      {"d3ab0bf79ac491bd7a784029224b863c70d64e11167afd22b01bc9757de318c0",  // 0.4.9
       "humaneval/utils",
       {"pass_at_k", "build_predictions"}},
      {"8030bc11d026a64d3a52532f619cac1607648b9fb6e6a00b0976f17bdad5b15c",  // 0.4.8
       "humaneval/utils",
       {"pass_at_k", "build_predictions"}},
      {"eecfcc264a63801d4ac478fac80b0f18c3faf16a107baf641a4fd498e81de7df",  // 0.4.9 to 0.4.13
       "mbpp/utils",
       {"pass_at_1", "build_predictions", "list_fewshot_samples"}},
      {"55d7fefe1a9d11b3ea1eebe89599595f481ebd89c25fcf7fa2c5c5534d7a2cb8",  // 0.4.8
       "mbpp/utils",
       {"list_fewshot_samples"}},
  };
  return kAll;
}

struct QualifiedName {
  std::string module;  ///< with '/' in place of '.'
  std::string function;
};

// Parses "a.b.f": module "a/b", function "f". A module never leads out of the folder in which it is
// looked for.
QualifiedName Parse(const std::string& name) {
  const size_t dot = name.rfind('.');
  QualifiedName parsed{name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)};
  std::replace(parsed.module.begin(), parsed.module.end(), '.', '/');
  const std::vector<std::string> parts = Split(parsed.module, '/');
  const auto plain = [](const std::string& part) {
    return !part.empty() &&
           part.find_first_not_of(
               "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == part.npos;
  };
  if (std::all_of(parts.begin(), parts.end(), plain) && plain(parsed.function)) return parsed;
  throw Error(
      ErrorKind::kInput,
      fmt::format("'{}' is not the name of a function, expected <module>.<function>", name));
}

// "lm_eval.tasks.mmlu.default.utils.f": "mmlu/default/utils.f".
std::string WithoutPackage(const std::string& name) {
  const QualifiedName rest = Parse(name.substr(kPackage.size()));
  return rest.module + "." + rest.function;
}

}  // namespace

std::string FunctionBeside(const fs::path& folder, const std::string& name,
                           const ReadRoots& roots) {
  const QualifiedName wanted = Parse(name);
  const fs::path file = folder / (wanted.module + ".py");
  const std::string own = (folder / wanted.module).string() + "." + wanted.function;
  if (!roots.HasFile(file)) {
    if (name.starts_with(kPackage)) return WithoutPackage(name);
    return name.find('/') != std::string::npos ? name : own;
  }
  const std::string hash = Sha256Hex(roots.Read(file, kModuleBytesMax));
  for (const KnownModule& known : KnownModules()) {
    if (hash != known.sha256) continue;
    const bool same = std::find(known.functions.begin(), known.functions.end(), wanted.function) !=
                      known.functions.end();
    if (same) return std::string(known.module) + "." + wanted.function;
  }
  return own;
}

std::string BuiltinFunction(const std::string& folder, const std::string& name) {
  if (name.starts_with(kPackage)) return WithoutPackage(name);
  return name.find('/') != std::string::npos || folder.empty() ? name : folder + "/" + name;
}

}  // namespace evald
