#pragma once

#include <string>

#include "base/jsonl.h"
#include "checkpoint/generation_config.h"
#include "evald/error.h"
#include "evald/json.h"

namespace evald {

/// A setting that an engine refuses: Error(kUsage) "engine 'x': key 'k': <problem>".
class SettingError : public Error {
 public:
  SettingError(const std::string& where, const std::string& key, const std::string& problem,
               const std::string& remedy = "")
      : Error(ErrorKind::kUsage, where + ": key '" + key + "': " + problem, remedy),
        key_(key),
        problem_(problem) {}

  const std::string& key() const { return key_; }
  const std::string& problem() const { return problem_; }

 private:
  std::string key_;
  std::string problem_;
};

/// The settings of one engine: the keys under `engine:` in eval.yaml. Every reader throws
/// SettingError naming the engine, the key and the expected value.
class Settings {
 public:
  /// `settings` may be null (none). Throws SettingError for every problem that FindSettingProblem
  /// (engines/engines.h) finds: a key that the engine does not have, a value of another
  /// type or out of its range, a required setting that is missing.
  Settings(const std::string& engine, const Json& settings);

  bool Has(const std::string& key) const;

  template <typename T>
  T Get(const std::string& key, T fallback) const {
    return Has(key) ? Require<T>(key) : fallback;
  }
  template <typename T>
  T Require(const std::string& key) const {
    try {
      return Field<T>(json_, key, where_);
    } catch (const Error& e) {
      throw SettingError(where_, key, Problem(key, e.message()), e.remedy());
    }
  }

  /// A number of bytes, given as a number or as text such as "2GiB"; 0 if it is absent.
  uint64_t Bytes(const std::string& key) const;

  /// Throws "engine 'x': key 'k': found ..., expected <expected>". For problems that show only
  /// where the engine runs: a file that does not exist, a variable that is not set.
  [[noreturn]] void Refuse(const std::string& key, const std::string& expected,
                           const std::string& remedy) const;

 private:
  /// Field()'s message without place and key.
  std::string Problem(const std::string& key, const std::string& message) const;

  Json json_;
  std::string where_;
};

/// The setting `generation_config`: checkpoint (the default) or ignore.
GenerationConfig::Use ReadGenerationConfigUse(const Settings& settings);

}  // namespace evald
