#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "datasets/yaml_reader.h"

namespace evald {

/// What the reading of many task files would otherwise read again and again: files that others
/// include, and the modules of functions. What was read once counts for all. Any thread.
class TaskYamlCache {
 public:
  /// An included file without the files that it includes; null if KeepIncluded was not called.
  std::shared_ptr<const YamlMapping> Included(const std::string& place) const;
  void KeepIncluded(const std::string& place, YamlMapping read);

  /// The full name of a function that files in `folder` call `name`, which the first call finds.
  /// Two threads may both find it. What `find` throws is not kept.
  std::string Function(const std::string& folder, const std::string& name,
                       const std::function<std::string()>& find);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const YamlMapping>> included_;
  std::map<std::pair<std::string, std::string>, std::string> functions_;
};

}  // namespace evald
