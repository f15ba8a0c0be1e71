#include "datasets/group_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "base/log.h"
#include "base/names.h"
#include "base/text.h"
#include "datasets/command_task.h"
#include "datasets/leaf_task.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kGroupDepthMax = 200;
constexpr size_t kLeavesMax = 20'000;
constexpr size_t kMembersMax = 40'000;  // of all groups, those that are reached again included

const std::vector<std::string> kGroupKeys = {"group", "group_alias", "task",
                                             "aggregate_metric_list", "metadata"};

bool IsGroupKey(const std::string& key) {
  return std::find(kGroupKeys.begin(), kGroupKeys.end(), key) != kGroupKeys.end();
}

[[noreturn]] void FailGroup(const std::string& where, const std::string& message) {
  throw Error(ErrorKind::kInput, where + ": " + message);
}

std::vector<std::string> FilterList(const Json& value, const std::string& where) {
  std::vector<std::string> filters;
  if (value.is_null()) return filters;
  for (const Json& filter : value.is_array() ? value : Json::array({value})) {
    if (!filter.is_string()) FailGroup(where, "filter_list is a list of names");
    filters.push_back(filter.get<std::string>());
  }
  return filters;
}

// AggMetricConfig. Without filter_list, the list is empty: the filters are those of the tasks.
GroupMetric ReadGroupMetric(const Json& value, const std::string& where) {
  static const std::vector<std::string> kKeys = {"metric", "filter_list", "aggregation",
                                                 "weight_by_size"};
  if (!value.is_object()) FailGroup(where, "an entry of aggregate_metric_list is a mapping");
  for (const auto& item : value.items()) {
    if (std::find(kKeys.begin(), kKeys.end(), item.key()) == kKeys.end()) {
      FailGroup(where, fmt::format("an entry of aggregate_metric_list has no key '{}'{}",
                                   item.key(), Suggestion(item.key(), kKeys)));
    }
  }
  GroupMetric metric;
  if (!value.contains("metric") || !value.at("metric").is_string()) {
    FailGroup(where, "an entry of aggregate_metric_list has no metric");
  }
  metric.metric = value.at("metric").get<std::string>();
  metric.filters = FilterList(value.value("filter_list", Json()), where);
  const Json aggregation = value.value("aggregation", Json("mean"));
  if (aggregation != "mean") FailGroup(where, "aggregation: a group aggregates by 'mean' only");
  const Json weight = value.value("weight_by_size", Json(true));
  if (!weight.is_boolean()) FailGroup(where, "weight_by_size is not true or false");
  metric.weight_by_size = weight.get<bool>();
  return metric;
}

GroupDefinition ReadGroup(const std::string& name, const YamlMapping& yaml, const Json& value,
                          const std::string& pointer) {
  GroupDefinition group;
  group.name = name;
  if (const std::string wrong = WrongWithName(name); !wrong.empty()) {
    FailGroup(yaml.Where(pointer + "/group"), "the name of a group: " + wrong);
  }
  const Json alias = value.value("group_alias", Json());
  if (!alias.is_null() && !alias.is_string()) {
    FailGroup(yaml.Where(pointer + "/group_alias"), "group_alias is not text");
  }
  group.alias = alias.is_string() ? alias.get<std::string>() : name;
  const Json metadata = value.value("metadata", Json());
  if (metadata.is_object() && metadata.contains("version")) {
    group.version = metadata.at("version").is_null() ? Json("None") : metadata.at("version");
  }
  Json metrics = value.value("aggregate_metric_list", Json());
  if (metrics.is_object()) metrics = Json::array({metrics});
  if (!metrics.is_null() && !metrics.is_array()) {
    FailGroup(
        yaml.Where(pointer + "/aggregate_metric_list"),
        fmt::format("aggregate_metric_list: found {}, expected a list of metrics", metrics.dump()));
  }
  for (size_t i = 0; i < metrics.size(); ++i) {
    const std::string at = pointer + "/aggregate_metric_list/" + std::to_string(i);
    group.metrics.push_back(ReadGroupMetric(metrics[i], yaml.Where(at)));
  }
  return group;
}

// The names without repetitions, in the order of their first places.
std::vector<std::string> EachOnce(std::vector<std::string> names) {
  std::set<std::string> seen;
  std::erase_if(names, [&](const std::string& name) { return !seen.insert(name).second; });
  return names;
}

}  // namespace

// The error also names an unreadable file, which may be the one that defines the name.
void GroupBuilder::RefuseName(const std::string& where, const std::string& name) const {
  const std::vector<BadTaskFile>& bad = index_.bad_files();
  std::string remedy = "`evald tasks` lists them";
  if (!bad.empty()) {
    remedy += fmt::format("; {} of the task files cannot be understood: {}{}", bad.size(),
                          bad.front().problem, bad.size() > 1 ? ", …" : "");
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("{}there is no task, group or tag '{}'{}", where, name,
                          Suggestion(name, index_.Names())),
              remedy);
}

// A command is no task of a file, and may have the name of one unless the run asks for both.
void GroupBuilder::AddCommand(const TaskRequest& request) {
  const bool added = asked_by_.emplace(request.name, "the command " + request.name).second;
  if (!added) RefuseCommandName(request.where, request.name);
  out_.leaves.push_back({request.name, CommandTaskOf(request), request.where});
}

void GroupBuilder::RefuseCommandName(const std::string& where, const std::string& name) {
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: this run has two tasks or groups '{}'", where, name),
              "give the command another 'name'");
}

ResolvedTasks GroupBuilder::Take() {
  for (const LeafTask& leaf : out_.leaves) {
    if (leaf.state->command && groups_.contains(leaf.name))
      RefuseCommandName(leaf.where, leaf.name);
  }
  return std::move(out_);
}

void GroupBuilder::Add(const TaskRequest& request) {
  if (request.command) return AddCommand(request);
  const std::string where = request.where.empty() ? "" : request.where + ": ";
  const TaskEntry* entry = nullptr;
  try {
    entry = index_.Find(request.name);
  } catch (Error& e) {
    throw e.AddContext(fmt::format("{}'{}' cannot be understood", where, request.name));
  }
  if (entry == nullptr) RefuseName(where, request.name);
  if ((request.limit || request.limit_share) && request.limit_total) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}'{}' has both limit and limit_total", where, request.name));
  }
  const auto [earlier, first_time] = requests_.emplace(request.name, request);
  if (!first_time) return RefuseOtherSettings(earlier->second, request);
  asked_for_ = {};
  const auto set = [&](const char* key, const Json& value) {
    asked_for_.values[key] = value;
    asked_for_.where[std::string("/") + key] = request.where;
  };
  if (request.num_fewshot) set("num_fewshot", *request.num_fewshot);
  if (request.repeats) set("repeats", *request.repeats);
  if (!request.sample_metrics.empty()) set("sample_metrics", request.sample_metrics);
  if (!request.generation_kwargs.is_null()) set("generation_kwargs", request.generation_kwargs);
  if (!request.metadata.is_null()) set("metadata", request.metadata);
  enable_thinking_ = request.enable_thinking;
  think_end_ = request.think_end;
  asking_ = request.name;
  const size_t first = out_.leaves.size();
  try {
    Build(*entry, {});
  } catch (Error& error) {
    const bool placed = error.message().rfind(request.where, 0) == 0;
    if (!placed) error.AddContext(fmt::format("{}: '{}'", request.where, request.name));
    throw;
  }
  SpreadLimit(request, first);
}

// The harness computes with the settings of the last of them and does not say so.
void GroupBuilder::RefuseOtherSettings(const TaskRequest& one, const TaskRequest& other) const {
  const auto settings = [](const TaskRequest& of) {
    return std::tie(of.limit, of.limit_total, of.limit_share, of.num_fewshot, of.repeats,
                    of.sample_metrics, of.generation_kwargs, of.enable_thinking, of.think_end,
                    of.metadata, of.judge);
  };
  if (settings(one) == settings(other)) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{}: '{}' is asked for twice, with other settings at {}", other.where,
                          other.name, one.where),
              "keep one of the two; a run of its own can have the other");
}

// If the total does not divide evenly, the first leaves get one document more.
void GroupBuilder::SpreadLimit(const TaskRequest& request, size_t first) {
  const auto leaves = static_cast<int64_t>(out_.leaves.size() - first);
  for (int64_t i = 0; i < leaves; ++i) {
    std::optional<int64_t> limit = request.limit;
    if (request.limit_total) {
      limit = *request.limit_total / leaves + (i < *request.limit_total % leaves ? 1 : 0);
    }
    if (!limit && !request.limit_share) continue;
    LeafTask& leaf = out_.leaves[first + static_cast<size_t>(i)];
    if (limit && *limit < 1) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: a limit of {} leaves no document of task '{}'", request.where,
                              *limit, leaf.name));
    }
    auto state = std::make_shared<LeafTask::State>(*leaf.state);
    state->limit = limit;
    state->limit_share = request.limit_share;
    leaf.state = std::move(state);
  }
}

std::string GroupBuilder::Build(const TaskEntry& entry, const Overrides& overrides) {
  if (entry.kind == EntryKind::kGroup) {
    return BuildGroup(entry.name, entry.yaml, entry.yaml.value, "", entry.path, overrides);
  }
  if (entry.kind == EntryKind::kTask) return BuildTask(entry.yaml, entry.path, overrides);
  for (const std::string& name : entry.tagged) {
    if (const TaskEntry* tagged = index_.Find(name)) {
      BuildTask(tagged->yaml, tagged->path, overrides);
    }
  }
  return entry.name;
}

// Like simple_evaluate with num_fewshot and gen_kwargs: the request goes before the files, but for
// a num_fewshot of 0.
void GroupBuilder::ApplyRequest(YamlMapping* task) const {
  for (const auto& item : asked_for_.values.items()) {
    const std::string pointer = "/" + item.key();
    Json& own = task->value[item.key()];
    if (item.key() == "num_fewshot" && own.is_number() && own == 0) {
      if (item.value() != 0) {
        log::Warn("{}: num_fewshot: {} has no effect on the task '{}', whose own file says 0 ({})",
                  asked_for_.where.at(pointer), item.value().dump(), task->value.value("task", ""),
                  task->Where(pointer));
      }
      continue;
    }
    if (own.is_object() && item.value().is_object()) {
      own.update(item.value());
    } else {
      own = item.value();
    }
    task->where[pointer] = asked_for_.where.at(pointer);
  }
}

// The harness refuses loglikelihood requests with enable_thinking as well, but only when it has
// come to them.
void GroupBuilder::ApplyThinking(LeafTask::State* state) const {
  const TaskConfig& config = state->config;
  if (enable_thinking_.value_or(false) && config.output_type != "generate_until") {
    throw Error(
        ErrorKind::kInput,
        fmt::format("the task '{}' scores log-likelihoods (output_type {}), which cannot be done "
                    "with thinking on (enable_thinking): the model would have to think before "
                    "each choice",
                    config.name, config.output_type),
        fmt::format("switch thinking off for it, as in tasks: [{{task: {}, enable_thinking: "
                    "false}}], or take a task that generates its answers",
                    asking_));
  }
  state->enable_thinking = enable_thinking_;
  state->think_end = think_end_;
}

// A group that reaches a task twice has it once. The later settings count, as in the harness.
std::string GroupBuilder::TakePlaceOf(const std::string& name,
                                      std::shared_ptr<LeafTask::State> state) {
  const auto earlier = std::find_if(out_.leaves.begin(), out_.leaves.end(),
                                    [&](const LeafTask& leaf) { return leaf.name == name; });
  earlier->where = state->config.where;
  earlier->state = std::move(state);
  return name;
}

std::string GroupBuilder::BuildTask(const YamlMapping& yaml, const std::string& path,
                                    const Overrides& overrides) {
  YamlMapping merged = yaml;
  // A group's value takes the place of the task's as a whole, generation_kwargs too: lm_eval
  // 0.4.13, tasks/_factory.py, TaskFactory._load_full_config
  for (const auto& item : overrides.values.items()) merged.value[item.key()] = item.value();
  for (const auto& [pointer, where] : overrides.where) merged.where[pointer] = where;
  ApplyRequest(&merged);
  for (const char* key : {"tag", "group", "task_list"}) merged.value.erase(key);
  auto state = std::make_shared<LeafTask::State>();
  state->config = ParseTaskConfig(merged, path);
  ApplyThinking(state.get());
  state->request = asking_;
  const std::string name = state->config.name;
  const auto [asked, added] = asked_by_.emplace(name, asking_);
  if (!added) {
    if (asked->second == asking_) return TakePlaceOf(name, std::move(state));
    throw Error(ErrorKind::kUsage,
                fmt::format("the task '{}' is asked for twice, by '{}' and by '{}'", name,
                            asked->second, asking_),
                "name the group or the task, not both: the group's results have a row for each of "
                "its tasks");
  }
  if (out_.leaves.size() >= kLeavesMax) {
    throw Error(ErrorKind::kUsage, fmt::format("more than {} tasks are asked for", kLeavesMax));
  }
  const std::string where = state->config.where;
  out_.leaves.push_back({name, std::move(state), where});
  return name;
}

std::string GroupBuilder::BuildGroup(const std::string& name, const YamlMapping& yaml,
                                     const Json& value, const std::string& pointer,
                                     const std::string& path, const Overrides& overrides) {
  if (std::find(within_.begin(), within_.end(), name) != within_.end())
    FailGroup(yaml.Where(pointer + "/group"), fmt::format("the group '{}' holds itself", name));
  if (within_.size() >= kGroupDepthMax) {
    FailGroup(yaml.Where(pointer + "/group"),
              fmt::format("groups are nested more than {} deep", kGroupDepthMax));
  }
  within_.push_back(name);
  GroupDefinition group = ReadGroup(name, yaml, value, pointer);
  Overrides inner;
  for (const auto& item : value.items()) {
    const std::string& key = item.key();
    if (IsGroupKey(key) || key == "tag") continue;
    const auto& known = TaskKeys();
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      std::vector<std::string> all = kGroupKeys;
      all.insert(all.end(), known.begin(), known.end());
      FailGroup(yaml.Where(pointer + "/" + key),
                fmt::format("a group has no key '{}'{}", key, Suggestion(key, all)));
    }
    inner.values[key] = item.value();
    inner.where["/" + key] = yaml.Where(pointer + "/" + key);
  }
  for (const auto& item : overrides.values.items()) inner.values[item.key()] = item.value();
  for (const auto& [at, where] : overrides.where) inner.where[at] = where;
  const size_t position = out_.groups.size();
  const bool fresh = groups_.insert(name).second;
  if (fresh) out_.groups.push_back(group);
  const Json members = value.value("task", Json::array());
  if (!members.is_array())
    FailGroup(yaml.Where(pointer + "/task"), "the task of a group is a list");
  for (size_t i = 0; i < members.size(); ++i) {
    BuildMember(yaml, members[i], pointer + "/task/" + std::to_string(i), name, path, inner,
                &group.children);
  }
  if (fresh) out_.groups[position].children = EachOnce(std::move(group.children));
  within_.pop_back();
  return name;
}

std::vector<std::string> GroupBuilder::BuildEntryAsMember(const TaskEntry& entry,
                                                          const Overrides& overrides) {
  if (entry.kind != EntryKind::kTag) return {Build(entry, overrides)};
  std::vector<std::string> names;
  for (const std::string& name : entry.tagged) {
    if (const TaskEntry* tagged = index_.Find(name)) {
      names.push_back(BuildTask(tagged->yaml, tagged->path, overrides));
    }
  }
  return names;
}

void GroupBuilder::BuildMember(const YamlMapping& yaml, const Json& member,
                               const std::string& pointer, const std::string& group,
                               const std::string& path, const Overrides& overrides,
                               std::vector<std::string>* children) {
  const std::string where = yaml.Where(pointer);
  if (++members_ > kMembersMax) {
    FailGroup(where, fmt::format("the groups have more than {} members, written out", kMembersMax));
  }
  const bool named = member.is_object() && (member.contains("task") || member.contains("group"));
  if (!member.is_string() && !named) {
    FailGroup(where, "a member of a group is a name, or a mapping with 'task' or 'group'");
  }
  const bool inline_group = member.is_object() && member.contains("group");
  const Json& name_value = member.is_string() ? member : member.at(inline_group ? "group" : "task");
  if (!name_value.is_string()) FailGroup(where, "the name of a member of a group is text");
  const auto name = name_value.get<std::string>();
  const TaskEntry* entry = index_.Find(name);
  if (inline_group && entry == nullptr) {
    children->push_back(BuildGroup(group + "::" + name, yaml, member, pointer, path, overrides));
    return;
  }
  Overrides own = overrides;
  if (member.is_object()) {
    for (const auto& item : member.items()) {
      if (item.key() == "group" || item.key() == "task") continue;
      own.values[item.key()] = item.value();
      own.where["/" + item.key()] = yaml.Where(pointer + "/" + item.key());
    }
  }
  if (entry != nullptr) {
    for (const std::string& child : BuildEntryAsMember(*entry, own)) children->push_back(child);
    return;
  }
  if (member.is_string() && !own.values.contains("dataset_path")) {
    FailGroup(where, fmt::format("the group '{}' names '{}', which is not known{}", group, name,
                                 Suggestion(name, index_.Names())));
  }
  YamlMapping task;
  task.value["task"] = group + "::" + name;
  task.where["/task"] = where;
  children->push_back(BuildTask(task, path, own));
}

}  // namespace evald
