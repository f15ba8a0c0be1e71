#include "worker/native/waiting_tree.h"

#include <algorithm>

#include "worker/native/scheduler.h"

namespace evald::native {
namespace {

// The number of tokens that tokens[begin, ...) and `edge` have in common.
size_t Along(const std::vector<int32_t>& tokens, size_t begin, const std::vector<int32_t>& edge) {
  const auto at = tokens.begin() + static_cast<int64_t>(begin);
  return static_cast<size_t>(std::mismatch(at, tokens.end(), edge.begin(), edge.end()).first - at);
}

}  // namespace

WaitingTree::~WaitingTree() = default;

void WaitingTree::Add(std::unique_ptr<Sequence> sequence) {
  if (sequence->due == 0) sequence->due = taken_ + patience_;
  by_age_.emplace(std::pair(sequence->due, sequence->id), sequence.get());
  Node* node = Insert(sequence->tokens);
  const int64_t length = sequence->positions_max;
  const auto longer = [](const auto& a, const auto& b) {
    return a->positions_max > b->positions_max;
  };
  node->here.insert(std::upper_bound(node->here.begin(), node->here.end(), sequence, longer),
                    std::move(sequence));
  for (; node != nullptr; node = node->parent) node->longest = std::max(node->longest, length);
}

WaitingTree::Node* WaitingTree::Insert(const Tokens& tokens) {
  Node* node = &root_;
  for (size_t at = 0; at < tokens.size();) {
    std::unique_ptr<Node>& child = node->children[tokens[at]];
    if (child == nullptr) {
      child = std::make_unique<Node>();
      child->edge.assign(tokens.begin() + static_cast<int64_t>(at), tokens.end());
      child->parent = node;
      return child.get();
    }
    const size_t common = Along(tokens, at, child->edge);
    node = common < child->edge.size() ? Split(child.get(), common) : child.get();
    at += common;
  }
  return node;
}

// Inserts a node into the edge above `node`, after `length` tokens, and returns it.
WaitingTree::Node* WaitingTree::Split(Node* node, size_t length) {
  std::unique_ptr<Node>& place = node->parent->children.at(node->edge.front());
  auto upper = std::make_unique<Node>();
  const auto cut = node->edge.begin() + static_cast<int64_t>(length);
  upper->edge.assign(node->edge.begin(), cut);
  upper->parent = node->parent;
  upper->longest = node->longest;
  node->edge.erase(node->edge.begin(), cut);
  node->parent = upper.get();
  upper->children[node->edge.front()] = std::move(place);
  place = std::move(upper);
  return place.get();
}

WaitingTree::Node* WaitingTree::NodeOf(const Tokens& tokens) {
  Node* node = &root_;
  for (size_t at = 0; at < tokens.size(); at += node->edge.size()) {
    node = node->children.at(tokens[at]).get();
  }
  return node;
}

// The lowest node that contains all sequences sharing the most with the last one taken.
const WaitingTree::Node* WaitingTree::Nearest() const {
  const Node* node = &root_;
  for (size_t at = 0; at < last_.size();) {
    const auto child = node->children.find(last_[at]);
    if (child == node->children.end()) break;
    node = child->second.get();
    const size_t common = Along(last_, at, node->edge);
    if (common < node->edge.size()) break;
    at += common;
  }
  return node;
}

Sequence* WaitingTree::Next() const {
  if (by_age_.empty()) return nullptr;
  const auto& [due, oldest] = *by_age_.begin();
  if (due.first < taken_) return oldest;
  const Node* node = Nearest();
  while (true) {
    const Node* best = nullptr;
    for (const auto& [token, child] : node->children) {
      if (best == nullptr || child->longest > best->longest) best = child.get();
    }
    if (!node->here.empty()) {
      Sequence* here = node->here.front().get();
      if (best == nullptr || here->positions_max >= best->longest) return here;
    }
    node = best;
  }
}

void WaitingTree::Follow(const Sequence& sequence) { last_ = sequence.tokens; }

std::unique_ptr<Sequence> WaitingTree::Take(Sequence* sequence) {
  by_age_.erase({sequence->due, sequence->id});
  ++taken_;
  Node* node = NodeOf(sequence->tokens);
  const auto found = std::find_if(node->here.begin(), node->here.end(),
                                  [&](const auto& other) { return other.get() == sequence; });
  std::unique_ptr<Sequence> taken = std::move(*found);
  node->here.erase(found);
  Prune(node);
  return taken;
}

// Removes nodes that have become empty, and updates the longest lengths.
void WaitingTree::Prune(Node* node) {
  while (node != nullptr) {
    Node* parent = node->parent;
    if (parent != nullptr && node->here.empty() && node->children.empty()) {
      parent->children.erase(node->edge.front());
    } else {
      node->longest = node->here.empty() ? 0 : node->here.front()->positions_max;
      for (const auto& [token, child] : node->children) {
        node->longest = std::max(node->longest, child->longest);
      }
    }
    node = parent;
  }
}

void WaitingTree::Drop(uint64_t owner) {
  std::vector<Sequence*> dropped;
  for (const auto& [age, sequence] : by_age_) {
    if (sequence->owner == owner) dropped.push_back(sequence);
  }
  for (Sequence* sequence : dropped) {
    Take(sequence);
    --taken_;  // none was preferred to another
  }
}

void WaitingTree::Clear() {
  by_age_.clear();
  root_.children.clear();
  root_.here.clear();
  root_.longest = 0;
}

}  // namespace evald::native
