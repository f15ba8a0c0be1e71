#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "datasets/yaml_reader.h"

namespace evald {

/// What the reading of many task files would otherwise read again and again: files that others
/// include, and the modules of functions. What was read once counts for all. Any thread.
class TaskYamlCache {
 public:
  /// An included file without the files that it includes; null if KeepIncluded was not called.
  std::shared_ptr<const YamlMapping> Included(const std::string& place) const;
  void KeepIncluded(const std::string& place, YamlMapping read);

  /// The SHA-256 of a module, which the first call makes; "" if there is no such file. Two threads
  /// may both make it. What `make` throws is not kept.
  std::string HashOfModule(const std::filesystem::path& module,
                           const std::function<std::string()>& make);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const YamlMapping>> included_;
  std::map<std::string, std::string> hashes_;
};

}  // namespace evald
