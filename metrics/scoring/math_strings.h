#pragma once

#include <optional>
#include <string>
#include <string_view>

// The rules by which lm_eval 0.4.13 finds and compares answers of mathematics as texts
// (tasks/hendrycks_math/utils.py, tasks/aime/utils.py, tasks/agieval/utils.py). All texts are valid
// UTF-8.
namespace evald {

/// Whether "\boxed 5" counts as a box, as for hendrycks_math and aime, and not for agieval.
enum class BoxForms { kBraces, kBracesAndSpace };

/// last_boxed_only_string: the last "\boxed{...}" or "\fbox{...}"; nothing if there is none.
std::optional<std::string> LastBoxed(std::string_view text, BoxForms forms);

/// remove_boxed: the content of a box; nothing if Python's assertion fails.
std::optional<std::string> RemoveBoxed(std::string_view boxed, BoxForms forms);

/// The text between the first and the last dollar sign; all of it if there are fewer than two.
std::string BetweenDollars(std::string_view text);

/// What "a/b" does if a or b is no integer: is_equiv of hendrycks_math and aime then compares the
/// texts as they are, that of agieval goes on.
enum class SlashRule { kComparesAsIs, kGoesOn };

/// is_equiv of two texts: whether they are equal after strip_string.
bool SameMath(const std::string& a, const std::string& b, SlashRule rule);

/// strip_string; nothing if Python raises.
std::optional<std::string> StripMath(std::string text, SlashRule rule);

/// parse_math_answer of agieval; nothing for None.
std::optional<std::string> AgievalAnswer(const std::string& text);

}  // namespace evald
