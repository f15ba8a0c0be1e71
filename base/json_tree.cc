#include "base/json_tree.h"

#include <algorithm>
#include <numeric>

namespace evald {
namespace {

using Object = Json::object_t;

/// Up to here each key is compared with those before it.
constexpr size_t kFewKeys = 16;

/// Drops what a repeated key had before: a key keeps its first place, and has its last value.
void KeepLastValues(Object* object) {
  std::vector<uint32_t> order(object->size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [object](uint32_t a, uint32_t b) {
    const int compared = (*object).begin()[a].first.compare((*object).begin()[b].first);
    return compared < 0 || (compared == 0 && a < b);
  });
  std::vector<bool> dropped(object->size());
  bool any = false;
  for (size_t i = 0, first = 0; i < order.size(); ++i) {
    auto& kept = object->begin()[order[first]];
    auto& now = object->begin()[order[i]];
    if (i == first || kept.first != now.first) {
      first = i;
      continue;
    }
    kept.second = std::move(now.second);
    dropped[order[i]] = any = true;
  }
  if (!any) return;
  Object rest;
  for (size_t i = 0; i < dropped.size(); ++i) {
    auto& member = object->begin()[i];
    if (!dropped[i]) rest.emplace_back(member.first, std::move(member.second));
  }
  object->swap(rest);
}

}  // namespace

bool JsonTree::key(std::string& name) {
  auto& object = open_.back()->get_ref<Object&>();
  if (object.size() < kFewKeys) {
    member_ = &object[name];
  } else {
    object.emplace_back(std::move(name), nullptr);
    member_ = &object.back().second;
  }
  return true;
}

bool JsonTree::end_object() {
  auto& object = open_.back()->get_ref<Object&>();
  if (object.size() > kFewKeys) KeepLastValues(&object);
  return Close();
}

bool JsonTree::Open(Json empty) {
  Json* const place = Place();
  *place = std::move(empty);
  open_.push_back(place);
  return true;
}

Json* JsonTree::Place() {
  if (open_.empty()) return &root_;
  if (open_.back()->is_object()) return member_;
  return &open_.back()->emplace_back(nullptr);
}

}  // namespace evald
