#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace evald::native {

struct Sequence;

/// The sequences that wait for a place, as a radix tree over their tokens. They come out by prefix,
/// then by length. After a sequence (Follow) comes the one that shares the most with it, so that a
/// prefix is used to its end before it leaves the cache. Among sequences that share as much, the
/// longest comes first, so that the batch stays full at the end. A sequence that was passed over
/// `patience` times comes first. One thread at a time.
class WaitingTree {
 public:
  explicit WaitingTree(int64_t patience) : patience_(patience) {}
  ~WaitingTree();

  void Add(std::unique_ptr<Sequence> sequence);
  /// The sequence to take next; null if none waits.
  Sequence* Next() const;
  std::unique_ptr<Sequence> Take(Sequence* sequence);
  /// From now on, sequences that share the most with this one come first.
  void Follow(const Sequence& sequence);
  void Clear();
  /// Removes the sequences of one owner.
  void Drop(uint64_t owner);

  size_t size() const { return by_age_.size(); }

 private:
  using Tokens = std::vector<int32_t>;
  struct Node {
    Tokens edge;  ///< tokens from the parent's end
    Node* parent = nullptr;
    std::map<int32_t, std::unique_ptr<Node>> children;  ///< by the edge's first token
    std::deque<std::unique_ptr<Sequence>> here;         ///< sequences that end here, longest first
    int64_t longest = 0;  ///< positions_max of the longest sequence here or below
  };

  Node* Insert(const Tokens& tokens);
  static Node* Split(Node* node, size_t length);
  Node* NodeOf(const Tokens& tokens);
  const Node* Nearest() const;
  void Prune(Node* node);

  int64_t patience_;
  int64_t taken_ = 0;
  Node root_;
  Tokens last_;  ///< of the followed sequence
  /// By the value of taken_ at which the sequence comes first, then by age.
  std::map<std::pair<int64_t, uint64_t>, Sequence*> by_age_;
};

}  // namespace evald::native
