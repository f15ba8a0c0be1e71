#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace evald {

/// Documents and device seconds of many tasks, and their sums, as a binary tree. A change and a
/// search take log n steps. Sums are recomputed from the leaves, so that a very large value leaves
/// no rounding error behind.
class WorkTree {
 public:
  struct Load {
    int64_t documents = 0;
    double device_s = 0;
  };

  void Append(const Load& load);
  void Set(size_t task, const Load& load);
  const Load& sum() const { return nodes_[1]; }
  /// The first task from `task` on that has documents; the number of tasks if none has.
  size_t FirstOpen(size_t task) const;

 private:
  void Update(size_t node);

  size_t tasks_ = 0;
  size_t leaves_ = 1;  // a power of two; leaf i is node leaves_ + i
  // node 1 is the root, 2n and 2n + 1 its children
  std::vector<Load> nodes_ = std::vector<Load>(2);
};

}  // namespace evald
