#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace evald {

struct LeaseLimits {
  int attempts_max = 3;                 ///< failures of one item before it is given up
  int64_t silence_max_us = 60'000'000;  ///< without a word from its holder, a lease ends
  /// So many times in a row that an item is lost with a holder that is at fault count as one
  /// failure. As many as a device fails before it is set aside: where it is not, it may well be the
  /// item.
  int same_holder_max = 3;
};

/// A lease that was granted: work on `item`, fenced by `attempt` (from 1).
struct Grant {
  int64_t item = 0;
  int attempt = 0;
};

/// Why an item will not be completed.
struct GivenUp {
  int64_t item = 0;
  int attempts = 0;
  std::string cause;  ///< of the last attempt
};

/// Who works on what. Trials are leased to workers, and metric jobs to metric processes, by one of
/// these each. A plain value: takes events and times, returns what follows; no clock, no I/O. Times
/// are microseconds on any one clock.
///
/// Invariants: an item has at most one live lease; attempts of an item only grow; what was
/// completed or given up is never leased again; a report changes nothing unless its reporter holds
/// the lease with its attempt.
class LeaseTable {
 public:
  explicit LeaseTable(LeaseLimits limits) : limits_(limits) {}

  /// Queues an item behind those of equal rank; lower ranks go first.
  void Add(int64_t item, int64_t rank);

  /// Leases the first queued item to `holder`, or the first that `fits`; nothing when there is
  /// none.
  std::optional<Grant> Lease(const std::string& holder, int64_t now,
                             const std::function<bool(int64_t item)>& fits = {});

  /// `holder` gave a sign of life.
  void Heard(const std::string& holder, int64_t now);

  /// Whether this attempt holds the lease, whoever has it.
  bool Holds(int64_t item, int attempt) const;
  /// Whether `holder` holds the lease with this attempt: only then its report counts. Item numbers
  /// and attempts can be guessed, so that they alone prove nothing.
  bool Holds(const std::string& holder, int64_t item, int attempt) const;

  /// The item is done. False (and no change) where `holder` does not hold the lease with this
  /// attempt.
  bool Complete(const std::string& holder, int64_t item, int attempt);

  /// The attempt failed. The item goes to the front of its rank, or is given up when `retry` is
  /// false or it has failed too often. False (and no change) without the lease.
  bool Fail(const std::string& holder, int64_t item, int attempt, const std::string& cause,
            bool retry);

  /// `holder` gives the item back, to the front of its rank, without a failure. False (and no
  /// change) without the lease.
  bool GiveBack(const std::string& holder, int64_t item, int attempt);

  /// The item need not be done any more: whether queued or leased it is forgotten, which is no
  /// failure. Who held it
  /// ("" when it was queued) and the attempt; nothing for an item that is neither.
  std::optional<std::pair<std::string, int>> Withdraw(int64_t item);

  /// `holder` is gone: ends all its leases and returns them. The one it has held longest, which it
  /// was most likely at, has failed by that; the others go back to the queue. With `at_fault` the
  /// holder may well be what failed: the first same_holder_max times in a row with the same one are
  /// one failure.
  std::vector<Grant> Lose(const std::string& holder, const std::string& cause,
                          bool at_fault = false);

  /// Holders that have been silent for too long, with at least one lease each.
  std::vector<std::string> Silent(int64_t now) const;

  /// Leases of `holder`.
  std::vector<Grant> HeldBy(const std::string& holder) const;

  /// Who holds the item, and its attempt.
  std::optional<std::pair<std::string, int>> HolderOf(int64_t item) const;
  /// When `holder` was given the item; nothing where it does not hold it.
  std::optional<int64_t> LeasedAt(const std::string& holder, int64_t item) const;

  bool leased(int64_t item) const { return leases_.count(item) > 0; }
  size_t queued() const;
  size_t leased() const { return leases_.size(); }
  size_t completed() const { return completed_; }
  const std::vector<GivenUp>& given_up() const { return given_up_; }
  /// Nothing is queued or leased.
  bool idle() const { return queued() == 0 && leased() == 0; }

 private:
  struct LiveLease {
    std::string holder;
    int attempt = 0;
    int64_t grant = 0;     ///< counts all that were ever given
    int64_t since_us = 0;  ///< when it was given
  };
  struct Item {
    int64_t rank = 0;
    int attempts = 0;
    int failures = 0;
    std::string failed_with;  ///< the last holder that was at fault
    int lost_with_it = 0;     ///< so many times in a row
  };
  void EndAttempt(int64_t item, const std::string& cause, bool retry);
  void EndLease(int64_t item);
  void GoBack(int64_t item);
  bool CountsAsOne(int64_t item, const std::string& holder, bool at_fault);

  LeaseLimits limits_;
  std::map<int64_t, std::deque<int64_t>> queue_;   // by rank
  std::map<int64_t, Item> items_;                  // queued and leased ones
  std::map<int64_t, LiveLease> leases_;            // by item
  std::map<std::string, std::set<int64_t>> held_;  // items by holder, of those that hold any
  std::map<std::string, int64_t> heard_;
  std::vector<GivenUp> given_up_;
  size_t completed_ = 0;
  int64_t grants_ = 0;
};

}  // namespace evald
