#pragma once

#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// What people wrote about a run, to tell it from others. It decides nothing.
struct RunLabels {
  std::string title;  ///< "": the run is shown under its model's name
  std::vector<std::string> tags;
  std::string note;

  bool operator==(const RunLabels&) const = default;
};

/// New values of a run's labels. Absent ones stay as they are.
struct LabelChange {
  std::optional<std::string> title;
  std::optional<std::vector<std::string>> tags;  ///< a tag that comes twice is kept once
  std::optional<std::string> note;

  bool empty() const { return !title && !tags && !note; }
};

void Apply(const LabelChange& change, RunLabels* labels);

/// Sets the members "title", "tags" and "note" of a Run resource.
void AddLabels(const RunLabels& labels, Json* resource);
/// The labels in a Run resource. Members that are absent or have another type count as empty.
RunLabels LabelsOf(const Json& resource);

}  // namespace evald
