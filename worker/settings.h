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
/// SettingError naming the engine, the key and what was expected.
class Settings {
 public:
  /// `settings` may be null (none). Throws SettingError for what FindSettingProblem
  /// (protocol/engine_settings.h) finds: a key that the engine does not have, a value of another
  /// type or out of its range, a setting that must be there.
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

  /// Throws "engine 'x': key 'k': found ..., expected <expected>". For what shows only where the
  /// engine runs: a file that is not there, a variable that is not set.
  [[noreturn]] void Refuse(const std::string& key, const std::string& expected,
                           const std::string& remedy) const;

 private:
  /// What Field says, without its place and its key.
  std::string Problem(const std::string& key, const std::string& message) const;

  Json json_;
  std::string where_;
};

/// The setting `generation_config`: checkpoint (the default) or ignore.
GenerationConfig::Use ReadGenerationConfigUse(const Settings& settings);

}  // namespace evald
