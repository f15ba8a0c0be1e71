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

// Modules of lm_eval's releases on PyPI; without a remark, of 0.4.13. Copies of such a file count
// as well. A file's hash covers all that its functions use of it; beyond it they use the standard
// library, numpy, scipy and, for truthfulqa, sacrebleu and rouge_score. A release is not listed for
// a function that does something else there: build_predictions_instruct of 0.4.9 cuts at the last
// code fence, and pass_at_1 of 0.4.8 takes all programs of a document as candidates of one.
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
      {"07d23b60b28f2a4f658dcf8440623a63fe6644854ce9b846a114dde980dc1214",
       "hellaswag/utils",
       {"process_docs"}},
      {"e55327629264a98f1d383fda24645b6779afb53fa0bce2150042b9416b1ae006",
       "winogrande/preprocess_winogrande",
       {"doc_to_text", "doc_to_target", "doc_to_choice"}},
      {"15778ab69ca3b96c3d82618500ad59702ff7ea9dbf09e90e4505abc16ac53ad0",
       "race/preprocess_race",
       {"doc_to_text", "doc_to_target", "doc_to_choice"}},
      {"d47eae06ecf1e9535b033394de62185327a1dca977cb29049003699adeb92801",
       "mmlu_pro/utils",
       {"doc_to_text", "fewshot_to_text", "fewshot_to_target", "process_biology",
        "process_business", "process_chemistry", "process_computer_science", "process_economics",
        "process_engineering", "process_health", "process_history", "process_law", "process_math",
        "process_other", "process_philosophy", "process_physics", "process_psychology"}},
      {"7c755f2c3f8f4ac20de96fb68941c43424d2ded0552d5ab81e672e15c410655c",
       "gpqa/zeroshot/utils",
       {"process_docs"}},
      {"8c70526cdc0f32811cd4cd35db6983561583980b4b7552c3484dc6846b41e241",
       "gpqa/n_shot/utils",
       {"process_docs"}},
      {"b603828710f1fb3e1b8fe42726b188544ef8dbd12d25f4ca676e42ca4d1a251b",  // and cot_*/utils
       "gpqa/generative/utils",
       {"process_docs"}},
      {"a44020374b172159bf5be80a64d2c4194c9d5c77284f696ac666361338c8da7d",
       "wikitext/preprocess_wikitext",
       {"wikitext_detokenizer", "process_results"}},
      {"a5782ee7d2e537968a5b83976195ae2b9b6e2a565a0bfb5c24d221b4d61a04f5",
       "drop/utils",
       {"process_docs", "process_results"}},
      {"8332e42f23c62043b23d74ee6d3934f997b209cd60a1ad45b7882d6b00929d5c",
       "hendrycks_math/utils",
       {"process_docs", "process_results"}},
      {"e5072ebf08479745698bec6cfa103faa4f3ac5764db09bcbe760953227f9082b",
       "aime/utils",
       {"process_results"}},
      {"d54929f3cfcae8ee7f1f0171414cb81ec19b4243ea6474d8155956beb18327d3",
       "agieval/utils",
       {"process_results", "process_results_mcqa"}},
      {"d3c827d1e2cd442a1e4738b527a18effd48cbb2aed478c12a652311b5ea4dbc8",
       "truthfulqa/utils",
       {"process_docs_gen", "process_results_gen", "process_results_mc2"}},
      {"ecc017c5c3c0a03757d94072fb74feac74406b63d2f6efa6ec68f73f8db8a9fd",  // and cot_zeroshot
       "bbh/zeroshot/utils",
       {"MapRegexFilter", "MultiChoiceRegexFilter", "WordSortFilter"}},
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

// The name of lm_eval's function that the file's content is; "" if it is none.
std::string KnownName(const fs::path& file, const std::string& function, const ReadRoots& roots) {
  return FunctionOfContent(Sha256Hex(roots.Read(file, kModuleBytesMax)), function);
}

// "lm_eval.tasks.mmlu.default.utils.f": "mmlu/default/utils.f".
std::string WithoutPackage(const std::string& name) {
  const QualifiedName rest = Parse(name.substr(kPackage.size()));
  return rest.module + "." + rest.function;
}

// The function of another folder of the same lm_eval/tasks, whose file decides if it is there.
std::string FunctionOfPackage(const fs::path& folder, const std::string& name,
                              const ReadRoots& roots) {
  constexpr std::string_view kTasks = "/lm_eval/tasks";
  const std::string inside = WithoutPackage(name);
  const std::string path = folder.string() + "/";
  const size_t tasks = path.find(std::string(kTasks) + "/");
  if (tasks == std::string::npos) return inside;
  const size_t dot = inside.rfind('.');
  const std::string own = path.substr(0, tasks + kTasks.size()) + "/" + inside;
  const fs::path file = own.substr(0, own.rfind('.')) + ".py";
  if (!roots.HasFile(file)) return inside;
  const std::string known = KnownName(file, inside.substr(dot + 1), roots);
  return known.empty() ? own : known;
}

}  // namespace

std::string FunctionOfContent(std::string_view sha256, std::string_view function) {
  for (const KnownModule& known : KnownModules()) {
    if (sha256 != known.sha256) continue;
    const bool same = std::find(known.functions.begin(), known.functions.end(), function) !=
                      known.functions.end();
    if (same) return fmt::format("{}.{}", known.module, function);
  }
  return "";
}

std::string FunctionBeside(const fs::path& folder, const std::string& name,
                           const ReadRoots& roots) {
  const QualifiedName wanted = Parse(name);
  const fs::path file = folder / (wanted.module + ".py");
  const std::string own = (folder / wanted.module).string() + "." + wanted.function;
  if (!roots.HasFile(file)) {
    if (name.starts_with(kPackage)) return FunctionOfPackage(folder, name, roots);
    return name.find('/') != std::string::npos ? name : own;
  }
  const std::string known = KnownName(file, wanted.function, roots);
  return known.empty() ? own : known;
}

std::string BuiltinFunction(const std::string& folder, const std::string& name) {
  if (name.starts_with(kPackage)) return WithoutPackage(name);
  return name.find('/') != std::string::npos || folder.empty() ? name : folder + "/" + name;
}

}  // namespace evald
