#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pieces.h"

namespace evald::tok {

/// The buffers for encoding one text, and the remembered words. One thread at a time.
struct Scratch {
  std::vector<Segment> raw_segments;
  std::vector<Segment> normalized_segments;
  std::string normalized;
  Pieces pieces;
  BpeModel::Scratch model;
};

/// Lends a Scratch to each thread that encodes. The pool keeps as many as were lent at once. Any
/// thread may call it.
class ScratchPool {
 public:
  /// Holds a Scratch until it is destroyed. Must not outlive the pool.
  class Loan {
   public:
    Loan(ScratchPool* pool, std::unique_ptr<Scratch> scratch)
        : pool_(pool), scratch_(std::move(scratch)) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan() { pool_->Return(std::move(scratch_)); }

    Scratch* get() const { return scratch_.get(); }
    Scratch* operator->() const { return scratch_.get(); }

   private:
    ScratchPool* pool_;
    std::unique_ptr<Scratch> scratch_;
  };

  Loan Borrow() { return {this, Take()}; }

 private:
  std::unique_ptr<Scratch> Take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Scratch> scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    return std::make_unique<Scratch>();
  }
  void Return(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace evald::tok
