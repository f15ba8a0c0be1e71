#pragma once

#include <string>
#include <vector>

namespace evald::cli {

/// A command line of lm-evaluation-harness in evald's words.
struct HarnessTranslation {
  std::string yaml;                ///< an eval.yaml
  std::vector<std::string> notes;  ///< what was left out, and what to look at, a sentence each
};

/// Translates the words of `lm_eval --model ... --tasks ...` as its release 0.4.13 reads them.
/// Words before `lm_eval` (`accelerate launch -m`) are passed over. Throws Error(kUsage) for an
/// option that the harness does not know, or one that would change scores and has no counterpart.
HarnessTranslation TranslateHarness(const std::vector<std::string>& words);

}  // namespace evald::cli
