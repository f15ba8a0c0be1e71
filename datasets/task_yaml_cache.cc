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

std::string TaskYamlCache::HashOfModule(const std::filesystem::path& module,
                                        const std::function<std::string()>& make) {
  const std::string key = module.string();
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = hashes_.find(key); found != hashes_.end()) return found->second;
  }
  std::string made = make();
  const std::lock_guard lock(mutex_);
  return hashes_.emplace(key, std::move(made)).first->second;
}

}  // namespace evald
