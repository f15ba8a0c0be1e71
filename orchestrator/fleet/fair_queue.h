#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace evald {

/// Whether a FairQueue takes a task.
enum class Taken {
  kYes,
  kUserIsFull,  ///< too many of this user's tasks wait
  kFull,        ///< too many tasks of all users wait
};

/// Tasks of users who take turns. A user has at most one task at work, and goes behind all others
/// when it is done. Tasks of one user keep their order. The number of waiting tasks is bounded, per
/// user and in all. The user "" stands for everybody in a service without tokens, and may fill the
/// whole queue. A plain value.
template <typename Task>
class FairQueue {
 public:
  FairQueue(size_t waiting_max, size_t waiting_per_user_max)
      : waiting_max_(waiting_max), waiting_per_user_max_(waiting_per_user_max) {}

  Taken Add(const std::string& user, Task task) {
    const auto known = users_.find(user);
    const size_t waiting = known == users_.end() ? 0 : known->second.waiting.size();
    if (!user.empty() && waiting >= waiting_per_user_max_) return Taken::kUserIsFull;
    if (waiting_ >= waiting_max_) return Taken::kFull;
    User& own = users_[user];
    if (!own.at_work && own.waiting.empty()) turns_.push_back(user);
    own.waiting.push_back(std::move(task));
    ++waiting_;
    return Taken::kYes;
  }

  /// The next task and its user. The task counts as at work until Done. Nothing if all waiting
  /// tasks belong to users with a task at work.
  std::optional<std::pair<std::string, Task>> Next() {
    if (turns_.empty()) return std::nullopt;
    std::string user = std::move(turns_.front());
    turns_.pop_front();
    User& own = users_.at(user);
    Task task = std::move(own.waiting.front());
    own.waiting.pop_front();
    own.at_work = true;
    --waiting_;
    return std::pair(std::move(user), std::move(task));
  }

  /// The user's task is done.
  void Done(const std::string& user) {
    User& own = users_.at(user);
    own.at_work = false;
    if (own.waiting.empty()) {
      users_.erase(user);
    } else {
      turns_.push_back(user);
    }
  }

  size_t waiting() const { return waiting_; }

 private:
  struct User {
    std::deque<Task> waiting;
    bool at_work = false;
  };

  size_t waiting_max_;
  size_t waiting_per_user_max_;
  size_t waiting_ = 0;
  std::map<std::string, User> users_;  // users with a task that waits or is at work
  std::deque<std::string> turns_;      // users with a waiting task and none at work
};

}  // namespace evald
