#include "worker/native/prefix_tree.h"

#include <algorithm>

namespace evald::native {
namespace {

int64_t CommonLength(PrefixTree::Tokens a, PrefixTree::Tokens b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
}

PrefixTree::Tokens PageTokens(PrefixTree::Tokens tokens, int64_t begin) {
  return tokens.subspan(
      static_cast<size_t>(begin),
      std::min(tokens.size() - static_cast<size_t>(begin), static_cast<size_t>(kPagePositions)));
}

}  // namespace

bool PrefixTree::Node::Less::operator()(Tokens a, Tokens b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

PrefixTree::PrefixTree() { root_.users = 1; }

PrefixTree::Match PrefixTree::Find(Tokens tokens, int64_t limit) const {
  Match match;
  const Tokens wanted = tokens.first(static_cast<size_t>(limit));
  const Node* node = &root_;
  bool ready = true;  // whether the whole path so far is ready
  for (int64_t begin = 0; begin < limit;) {
    const Tokens page = PageTokens(wanted, begin);
    // In lexicographic order, the best match is next to the place of the page.
    Node* best = nullptr;
    int64_t common = 0;
    const auto after = node->children.lower_bound(page);
    const auto consider = [&](const auto& it) {
      const int64_t length = CommonLength(page, it->first);
      const bool better = length == common && best != nullptr && it->second->ready > best->ready;
      if (length > common || better) {
        common = length;
        best = it->second.get();
      }
    };
    if (after != node->children.end()) consider(after);
    if (after != node->children.begin()) consider(std::prev(after));
    if (best == nullptr) break;
    match.coming = best;
    match.coming_length = begin + common;
    if (ready) {
      const int64_t usable = std::min<int64_t>(common, best->ready);
      match.length = begin + usable;
      if (usable == kPagePositions) {
        match.whole.push_back(best);
      } else if (usable > 0) {
        match.partial = best;
        match.partial_length = usable;
      }
      ready = usable == kPagePositions;
    }
    if (common < kPagePositions) break;
    begin += kPagePositions;
    node = best;
  }
  return match;
}

std::vector<PrefixTree::Node*> PrefixTree::Hold(Tokens tokens) {
  std::vector<Node*> path;
  Node* node = &root_;
  for (int64_t begin = 0; begin < static_cast<int64_t>(tokens.size()); begin += kPagePositions) {
    const Tokens page = PageTokens(tokens, begin);
    auto found = node->children.find(page);
    if (found == node->children.end()) {
      auto fresh = std::make_unique<Node>();
      fresh->tokens.assign(page.begin(), page.end());
      fresh->parent = node;
      UnlistIfListed(node);
      found = node->children.emplace(fresh->tokens, std::move(fresh)).first;
      ++size_;
    }
    node = found->second.get();
    path.push_back(node);
  }
  Hold(path);
  return path;
}

void PrefixTree::Hold(const std::vector<Node*>& path) {
  for (Node* node : path) {
    UnlistIfListed(node);
    ++node->users;
  }
}

void PrefixTree::Release(const std::vector<Node*>& path) {
  for (auto it = path.rbegin(); it != path.rend(); ++it) {
    Node* node = *it;
    --node->users;
    node->used = ++clock_;
    const bool whole = node->ready == static_cast<int>(node->tokens.size());
    if (node->users == 0 && !whole && node->children.empty()) {
      Remove(node);
    } else {
      ListIfIdle(node);
    }
  }
}

bool PrefixTree::EvictOne() {
  if (idle_.empty()) return false;
  Node* node = *idle_.begin();
  Remove(node);
  return true;
}

void PrefixTree::UnlistIfListed(Node* node) {
  if (node->users == 0 && node->children.empty()) idle_.erase(node);
}

void PrefixTree::ListIfIdle(Node* node) {
  if (node->users == 0 && node->children.empty()) idle_.insert(node);
}

void PrefixTree::Remove(Node* node) {
  idle_.erase(node);
  Node* parent = node->parent;
  parent->children.erase(parent->children.find(node->tokens));
  --size_;
  ListIfIdle(parent);
}

}  // namespace evald::native
