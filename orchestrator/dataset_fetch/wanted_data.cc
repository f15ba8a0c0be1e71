#include "orchestrator/dataset_fetch/wanted_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "datasets/hub_folder.h"
#include "datasets/leaf_task.h"
#include "datasets/task_data.h"

namespace evald::dataset_fetch {
namespace {

void AddOnce(const std::string& name, std::vector<std::string>* names) {
  if (std::find(names->begin(), names->end(), name) == names->end()) names->push_back(name);
}

// The element for which `is_it` holds, or a new one at the end.
template <typename T, typename IsIt>
T* FindOrAdd(std::vector<T>* list, IsIt is_it) {
  const auto found = std::find_if(list->begin(), list->end(), is_it);
  return found != list->end() ? &*found : &list->emplace_back();
}

class Collector {
 public:
  explicit Collector(std::filesystem::path data_dir) : data_dir_(std::move(data_dir)) {}

  void Add(const LeafTask& leaf) {
    const TaskConfig& config = leaf.state->config;
    if (!config.custom_dataset.empty())
      AddOwn(leaf.name, fmt::format("made by the function {}", config.custom_dataset), {}, "");
    for (const SplitFound& split : FindTaskData(leaf, data_dir_, {})) {
      if (!split.own) {
        AddSplit(leaf.name, split);
      } else if (!split.hub_files.empty()) {
        for (const std::string& file : split.hub_files) AddFile(leaf.name, file, split);
      } else {
        AddOwn(leaf.name,
               fmt::format("{}: {}, which the task's file places",
                           split.dataset.empty() ? "its data" : split.dataset, split.split),
               split.files, split.failure ? split.failure->what() : "");
      }
    }
  }

  WantedData Take() { return std::move(data_); }

 private:
  WantedDataset* DatasetOf(const std::string& name) {
    auto* dataset =
        FindOrAdd(&data_.datasets, [&](const WantedDataset& one) { return one.dataset == name; });
    dataset->dataset = name;
    return dataset;
  }

  void AddSplit(const std::string& task, const SplitFound& split) {
    auto* wanted = FindOrAdd(&DatasetOf(split.dataset)->splits, [&](const WantedSplit& one) {
      return one.part == split.part && one.split == split.split;
    });
    wanted->part = split.part;
    wanted->split = split.split;
    wanted->found = split.files;
    wanted->places = split.places;
    wanted->tables = split.tables;
    wanted->problem = split.failure ? split.failure->message() : "";
    AddOnce(task, &wanted->tasks);
  }

  void AddFile(const std::string& task, const std::string& text, const SplitFound& split) {
    const auto name = ParseHubFileName(text, "task '" + task + "'");
    auto* wanted = FindOrAdd(&DatasetOf(name->dataset)->files, [&](const WantedFile& one) {
      return one.path == name->path && one.revision == name->revision;
    });
    wanted->path = name->path;
    wanted->revision = name->revision;
    wanted->there = !split.failure;
    AddOnce(task, &wanted->tasks);
  }

  void AddOwn(const std::string& task, const std::string& what,
              const std::vector<std::string>& found, const std::string& problem) {
    auto* own = FindOrAdd(&data_.own, [&](const OwnData& one) {
      return one.what == what && one.found == found && one.problem == problem;
    });
    own->what = what;
    own->found = found;
    own->problem = problem;
    AddOnce(task, &own->tasks);
  }

  std::filesystem::path data_dir_;
  WantedData data_;
};

}  // namespace

bool WantedDataset::AllThere() const {
  return std::all_of(splits.begin(), splits.end(),
                     [](const WantedSplit& split) { return !split.found.empty(); }) &&
         std::all_of(files.begin(), files.end(), [](const WantedFile& file) { return file.there; });
}

WantedData WantedDataOf(const ResolvedTasks& tasks, const std::filesystem::path& data_dir) {
  Collector collector(data_dir);
  for (const LeafTask& leaf : tasks.leaves) collector.Add(leaf);
  return collector.Take();
}

}  // namespace evald::dataset_fetch
