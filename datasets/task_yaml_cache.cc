#include "datasets/task_yaml_cache.h"

namespace evald {

std::shared_ptr<const YamlMapping> TaskYamlCache::Included(const std::string& place) const {
  const std::lock_guard lock(mutex_);
  const auto found = included_.find(place);
  return found == included_.end() ? nullptr : found->second;
}

void TaskYamlCache::KeepIncluded(const std::string& place, YamlMapping read) {
  auto kept = std::make_shared<const YamlMapping>(std::move(read));
  const std::lock_guard lock(mutex_);
  included_.emplace(place, std::move(kept));
}

std::string TaskYamlCache::Function(const std::string& folder, const std::string& name,
                                    const std::function<std::string()>& find) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = functions_.find({folder, name});
    if (known != functions_.end()) return known->second;
  }
  std::string found = find();
  const std::lock_guard lock(mutex_);
  return functions_.emplace(std::make_pair(folder, name), std::move(found)).first->second;
}

}  // namespace evald
