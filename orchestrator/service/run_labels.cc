#include "orchestrator/service/run_labels.h"

#include <algorithm>

namespace evald {
namespace {

std::string TextOrNone(const Json& resource, const char* name) {
  const auto found = resource.find(name);
  return found != resource.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

void Apply(const LabelChange& change, RunLabels* labels) {
  if (change.title) labels->title = *change.title;
  if (change.note) labels->note = *change.note;
  if (!change.tags) return;
  labels->tags.clear();
  for (const std::string& tag : *change.tags) {
    const bool known =
        std::find(labels->tags.begin(), labels->tags.end(), tag) != labels->tags.end();
    if (!tag.empty() && !known) labels->tags.push_back(tag);
  }
}

void AddLabels(const RunLabels& labels, Json* resource) {
  (*resource)["title"] = labels.title;
  (*resource)["tags"] = labels.tags;
  (*resource)["note"] = labels.note;
}

RunLabels LabelsOf(const Json& resource) {
  RunLabels labels;
  if (!resource.is_object()) return labels;
  labels.title = TextOrNone(resource, "title");
  labels.note = TextOrNone(resource, "note");
  const auto tags = resource.find("tags");
  if (tags == resource.end() || !tags->is_array()) return labels;
  for (const Json& tag : *tags) {
    if (tag.is_string()) labels.tags.push_back(tag.get<std::string>());
  }
  return labels;
}

}  // namespace evald
