#include "orchestrator/schedule/work_tree.h"

namespace evald {

void WorkTree::Update(size_t node) {
  const Load &left = nodes_[2 * node], &right = nodes_[2 * node + 1];
  nodes_[node] = {left.documents + right.documents, left.device_s + right.device_s};
}

void WorkTree::Append(const Load& load) {
  if (tasks_ == leaves_) {
    std::vector<Load> grown(4 * leaves_);
    for (size_t i = 0; i < tasks_; ++i) grown[2 * leaves_ + i] = nodes_[leaves_ + i];
    nodes_ = std::move(grown);
    leaves_ *= 2;
    for (size_t node = leaves_ - 1; node > 0; --node) Update(node);
  }
  Set(tasks_++, load);
}

void WorkTree::Set(size_t task, const Load& load) {
  nodes_[leaves_ + task] = load;
  for (size_t node = (leaves_ + task) / 2; node > 0; node /= 2) Update(node);
}

size_t WorkTree::FirstOpen(size_t task) const {
  if (task >= tasks_) return tasks_;
  size_t node = leaves_ + task;
  while (nodes_[node].documents == 0) {
    while (node % 2 == 1) node /= 2;  // up to where there is something to the right
    if (node == 0) return tasks_;
    ++node;
  }
  while (node < leaves_) {
    node *= 2;
    if (nodes_[node].documents == 0) ++node;
  }
  return node - leaves_;
}

}  // namespace evald
