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

/// The content of pages that are kept or being computed, as a tree. Its nodes are pages of up to
/// kPagePositions tokens, each below the page of the tokens before it. Every computed sequence of
/// tokens is a path from the root.
///
/// A node lives while a sequence uses it (Hold), and then until its memory is needed: EvictOne
/// gives back the least recently used leaf. One thread at a time.
class PrefixTree {
 public:
  using Tokens = std::span<const int32_t>;

  struct Node {
    std::vector<int32_t> tokens;
    PageRef page;   ///< null before its first position is computed
    int ready = 0;  ///< computed positions
    Node* parent = nullptr;
    /// Sequences that wait for positions of this page; set by the scheduler
    std::vector<Sequence*> waiting;

    bool held() const { return users > 0; }

   private:
    friend class PrefixTree;
    struct Less {
      using is_transparent = void;
      bool operator()(Tokens a, Tokens b) const;
    };
    std::map<std::vector<int32_t>, std::unique_ptr<Node>, Less> children;
    int64_t users = 0;  ///< sequences that hold it
    uint64_t used = 0;  ///< clock_ when it was last released
  };

  /// A match consists of `whole`, the pages that can be used as they are, and of `partial`, a page
  /// whose first `partial_length` positions can be copied (null: none). Together they have `length`
  /// positions, all of them computed. If positions that are not computed yet count too, the longest
  /// match ends in the node `coming` and has `coming_length` positions.
  struct Match {
    std::vector<Node*> whole;
    Node* partial = nullptr;
    int64_t partial_length = 0;
    int64_t length = 0;
    Node* coming = nullptr;
    int64_t coming_length = 0;
  };

  PrefixTree();

  /// The longest match for a prefix of tokens[0, limit).
  Match Find(Tokens tokens, int64_t limit) const;

  /// The path of `tokens`, held until Release, with new nodes where there were none. A new node has
  /// no page; the scheduler sets `page` and `ready` as it is computed.
  std::vector<Node*> Hold(Tokens tokens);
  void Hold(const std::vector<Node*>& path);

  /// Releases a held path. Parts that are not ready and held by no one else are dropped.
  void Release(const std::vector<Node*>& path);

  /// Gives back the least recently used page that no sequence holds and no page follows. False if
  /// there is none.
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
  std::set<Node*, Older> idle_;  ///< leaves that no sequence holds
  uint64_t clock_ = 0;
  int64_t size_ = 0;
};

}  // namespace evald::native
