#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "worker/native/kv_cache.h"

namespace evald::native {

struct Sequence;

/// What the pages that are kept, or are being computed, hold: a tree whose nodes are pages, each of
/// up to kPagePositions tokens, each below the page of the tokens before it. Every sequence of
/// tokens that was computed is a path from the root.
///
/// A node lives as long as a sequence uses it (Hold), and then until its memory is needed: EvictOne
/// gives back the leaf that was used longest ago. One thread at a time.
class PrefixTree {
 public:
  using Tokens = std::span<const int32_t>;

  struct Node {
    std::vector<int32_t> tokens;
    PageRef page;   ///< null before its first position is computed
    int ready = 0;  ///< positions that are computed
    Node* parent = nullptr;
    std::vector<Sequence*> waiting;  ///< for positions of this page; the scheduler's

    bool held() const { return users > 0; }

   private:
    friend class PrefixTree;
    struct Less {
      using is_transparent = void;
      bool operator()(Tokens a, Tokens b) const;
    };
    std::map<std::vector<int32_t>, std::unique_ptr<Node>, Less> children;
    int64_t users = 0;  ///< sequences that hold it
    uint64_t used = 0;  ///< when it was last let go
  };

  /// Whole pages that are ready, then a page of which the first `partial_length` positions can be
  /// copied (null for none), up to `length` positions in all. `coming` is the node of the longest
  /// match if those that are not ready are counted too, `coming_length` its length.
  struct Match {
    std::vector<Node*> whole;
    Node* partial = nullptr;
    int64_t partial_length = 0;
    int64_t length = 0;
    Node* coming = nullptr;
    int64_t coming_length = 0;
  };

  PrefixTree();

  /// The longest prefix of tokens[0, limit).
  Match Find(Tokens tokens, int64_t limit) const;

  /// The path of `tokens`, with nodes for what was not there, held until Release. A new node has no
  /// page; whoever computes it sets `page` and `ready`.
  std::vector<Node*> Hold(Tokens tokens);
  void Hold(const std::vector<Node*>& path);

  /// Lets go of a held path. What is not ready then, and nobody else holds, is dropped.
  void Release(const std::vector<Node*>& path);

  /// Gives back the page that was used longest ago of those that nobody holds and nothing follows;
  /// false when there is none.
  bool EvictOne();

  int64_t size() const { return size_; }  ///< nodes

 private:
  struct Older {
    bool operator()(const Node* a, const Node* b) const { return a->used < b->used; }
  };

  void UnlistIfListed(Node* node);
  void ListIfIdle(Node* node);
  void Remove(Node* node);

  Node root_;
  std::set<Node*, Older> idle_;  ///< leaves that nobody holds
  uint64_t clock_ = 0;
  int64_t size_ = 0;
};

}  // namespace evald::native
