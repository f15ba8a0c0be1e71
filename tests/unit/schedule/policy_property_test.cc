// Conditions that hold for every policy, in whatever order events come. A driver plays devices that
// ask, trials that end or fail, devices that are lost and added, and estimates that change. If the
// policy has late trials computed twice, their backups come first or last, fail or are lost.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "orchestrator/schedule/backups.h"
#include "orchestrator/schedule/policy.h"

namespace evald {
namespace {

constexpr double kWild[] = {0, 1e-9, 1e-3, 0.1, 1, 1, 30, 1e4, 1e12};

class Driver {
 public:
  Driver(const std::string& policy, uint64_t seed)
      : random_(seed), work_(1 + Below(9), 1 + Below(64), 1 + Below(32)) {
    policy_ = MakePolicy(policy, costs_);
    twin_ = MakePolicy(policy, costs_);
    busy_.resize(static_cast<size_t>(work_.devices()));
    const int tasks = Below(10) == 0 ? 0 : Below(2) == 0 ? Below(6) : Below(40);
    const bool wild = Below(2) == 0;
    for (int t = 0; t < tasks; ++t) AddTask(t, wild);
  }

  void Play() {
    for (int step = 0; step < 60 + Below(300) && !testing::Test::HasFatalFailure(); ++step) Step();
    // From here on no fault occurs. Each document is given once more at most, and then the policy
    // must end.
    int64_t asks_left = 10'000 + 100 * all_;
    while ((committed_ < all_ || work_.documents() > 0) && !testing::Test::HasFatalFailure()) {
      ASSERT_GT(asks_left--, 0) << "it does not end: " << committed_ << " of " << all_
                                << " documents";
      Sweep();
    }
    for (size_t t = 0; t < commits_.size(); ++t) {
      for (size_t d = 0; d < commits_[t].size(); ++d)
        ASSERT_EQ(commits_[t][d], 1) << "task " << t << ", document " << d;
    }
    ASSERT_EQ(work_.documents(), 0);
    for (int d = 0; d < work_.devices(); ++d) ASSERT_TRUE(policy_->Next(work_, d).empty());
  }
  int64_t backups() const { return copies_; }

 private:
  struct Trial {
    std::vector<std::pair<size_t, DocumentRange>> documents;
    int64_t number = 0;
    int64_t counterpart = -1;  // its live backup, or its original
    bool backup = false;
    double since = 0;
  };

  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  TaskEstimate Estimate(int task, bool wild) {
    const auto any = [&] {
      return wild ? kWild[Below(std::size(kWild))] : 0.001 * (1 + Below(5000));
    };
    TaskEstimate estimate;
    estimate.name = fmt::format("task {}", task);
    estimate.dataset = task / 2;
    estimate.size = Below(4) == 0 ? 0 : 1 + Below(20);
    estimate.device_s = any();
    estimate.request_s = any();
    estimate.prefix_s = Below(2) == 0 ? 0 : any();
    estimate.score_s = Below(2) == 0 ? 0 : any();
    return estimate;
  }

  void AddTask(int task, bool wild) {
    const int64_t documents = Below(5) == 0   ? 0
                              : Below(3) == 0 ? 1
                              : Below(4) == 0 ? Below(3000)
                                              : Below(60);
    commits_.emplace_back(static_cast<size_t>(documents), 0);
    held_.emplace_back(static_cast<size_t>(documents), false);
    doubled_.emplace_back(static_cast<size_t>(documents), false);
    // Some documents are done since an earlier attempt at the run.
    std::vector<DocumentRange> open;
    for (int64_t first = 0; first < documents;) {
      const int64_t end = std::min(documents, first + 1 + Below(1000));
      if (Below(4) > 0) {
        open.push_back({first, end});
      } else {
        for (int64_t d = first; d < end; ++d) commits_.back()[static_cast<size_t>(d)] = 1;
        committed_ += end - first;
      }
      first = end;
    }
    all_ += documents;
    const TaskEstimate estimate = Estimate(task, wild);
    work_.Add(estimate, open);
    costs_of_.Add({estimate, 8});
  }

  void Step() {
    now_ += Below(4) == 0 ? Below(100) : 0.01 * Below(100);
    const int device = Below(work_.devices());
    switch (Below(12)) {
      case 0:
        return Fail(device);
      case 1:
        return LoseOne();
      case 2:
        return AddOne();
      case 3:
      case 4:
        if (work_.tasks() == 0) return;
        {
          const int task = Below(static_cast<int>(work_.tasks()));
          return work_.Expect(static_cast<size_t>(task), Estimate(task, Below(2) == 0));
        }
      case 5:
      case 6:
        return Complete(device);
      default:
        return Ask(device);
    }
  }

  // A device may ask for the next trial while it computes the last one.
  void Ask(int device) {
    const std::vector<Cut> cuts = policy_->Next(work_, device);
    CheckEqual(cuts, twin_->Next(work_, device));
    if (cuts.empty()) {
      // Only a policy that deals may keep a trial for another device.
      if (std::string(policy_->name()) != "round-robin") {
        ASSERT_EQ(work_.documents(), 0) << "a device starves";
      }
      if (policy_->backs_up_stragglers() && work_.documents() == 0) Copy(device);
      return;
    }
    Trial trial;
    std::set<size_t> tasks;
    double seconds = 0, most_s = costs_.trial_max_s;
    int64_t count = 0;
    for (const Cut& cut : cuts) {
      // an expensive prefix makes trials longer
      most_s = std::max(most_s, 10 * work_.estimate(cut.task).prefix_s);
      ASSERT_LT(cut.task, work_.tasks());
      ASSERT_TRUE(tasks.insert(cut.task).second)
          << "task " << cut.task << " stands in a trial twice";
      ASSERT_GT(cut.documents, 0);
      ASSERT_LE(cut.documents, work_.open(cut.task));
      seconds += static_cast<double>(cut.documents) * work_.estimate(cut.task).device_s;
      count += cut.documents;
      for (const DocumentRange& range : work_.Take(cut.task, cut.documents)) {
        trial.documents.emplace_back(cut.task, range);
        for (int64_t d = range.first; d < range.end; ++d) {
          auto held = held_[cut.task].begin() + d;
          ASSERT_FALSE(*held) << "given to two devices";
          *held = true;
        }
      }
    }
    if (std::string(policy_->name()) == "elastic" && count > 1) {
      ASSERT_LE(seconds, most_s * (1 + 1e-9));
    }
    trial.number = trials_++;
    trial.since = now_;
    busy_[static_cast<size_t>(device)].push_back(std::move(trial));
    Report(device);
  }

  void Report(int device) {
    std::vector<BegunTrial> begun;
    for (const Trial& trial : busy_[static_cast<size_t>(device)]) {
      if (trial.backup || trial.counterpart >= 0) continue;
      FreshSeconds fresh(costs_.lease_s);
      for (const auto& [task, range] : trial.documents) fresh.Add(costs_of_, task, range.size());
      begun.push_back({trial.number, trial.since, fresh.total()});
    }
    backups_.Report(now_, device, begun);
  }

  Trial* Find(int64_t number) {
    for (std::vector<Trial>& trials : busy_) {
      for (Trial& trial : trials) {
        if (trial.number == number) return &trial;
      }
    }
    return nullptr;
  }

  // Computes another device's late trial a second time.
  void Copy(int device) {
    const auto late = backups_.Next(now_, device, [this](int of) { Report(of); });
    if (!late) return;
    ASSERT_NE(late->device, device);
    ASSERT_LE(late->at, now_);
    Trial* of = Find(late->trial);
    ASSERT_NE(of, nullptr) << "a backup of what has ended";
    ASSERT_FALSE(of->backup);
    ASSERT_LT(of->counterpart, 0) << "two backups at once";
    Trial backup{of->documents, trials_++, of->number, true, now_};
    of->counterpart = backup.number;
    for (const auto& [task, range] : backup.documents) {
      for (int64_t d = range.first; d < range.end; ++d)
        doubled_[task][static_cast<size_t>(d)] = true;
    }
    busy_[static_cast<size_t>(device)].push_back(std::move(backup));
    Report(late->device);
    ++copies_;
  }

  void Part(const Trial& trial) {
    if (trial.counterpart < 0) return;
    if (Trial* counterpart = Find(trial.counterpart)) counterpart->counterpart = -1;
  }

  // The first commit counts, so a document that was computed twice may be committed already.
  void Commit(size_t task, int64_t document) {
    int& commits = commits_[task][static_cast<size_t>(document)];
    if (commits > 0) {
      ASSERT_TRUE(doubled_[task][static_cast<size_t>(document)])
          << "committed before, and never copied";
      return;
    }
    ++commits;
    ++committed_;
  }

  static void CheckEqual(const std::vector<Cut>& a, const std::vector<Cut>& b) {
    ASSERT_EQ(a.size(), b.size()) << "equal calls, other answers";
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(a[i].task, b[i].task);
      ASSERT_EQ(a[i].documents, b[i].documents);
    }
  }

  void Complete(int device) {
    std::vector<Trial>& trials = busy_[static_cast<size_t>(device)];
    if (trials.empty()) return;
    const Trial trial = trials.front();
    for (const auto& [task, range] : trial.documents) {
      for (int64_t d = range.first; d < range.end; ++d) {
        // Other holders keep the documents: those of a backup belong to its trial.
        if (!trial.backup || trial.counterpart >= 0) held_[task][static_cast<size_t>(d)] = false;
        Commit(task, d);
      }
    }
    trials.erase(trials.begin());
    if (Below(2) == 0) backups_.Measured(device, 0.1 * Below(50), 0.1 * Below(50));
    for (std::vector<Trial>& others : busy_) {  // the counterpart is revoked
      std::erase_if(others, [&](const Trial& other) { return other.number == trial.counterpart; });
    }
  }

  // Part of the trial may have been committed before.
  void Fail(int device) {
    std::vector<Trial>& trials = busy_[static_cast<size_t>(device)];
    if (trials.empty()) return;
    const Trial trial = trials.back();
    trials.pop_back();
    Part(trial);
    if (!trial.backup) GiveBack(trial);
  }

  void GiveBack(const Trial& trial) {
    for (auto [task, range] : trial.documents) {
      const int64_t done = Below(3) == 0 ? Below(static_cast<int>(range.size()) + 1) : 0;
      for (int64_t d = range.first; d < range.end; ++d) held_[task][static_cast<size_t>(d)] = false;
      for (int64_t d = range.first; d < range.first + done; ++d) Commit(task, d);
      range.first += done;
      // In one piece or in several.
      const int64_t middle = range.first + Below(static_cast<int>(range.size()) + 1);
      work_.PutBack(task, {middle, range.end});
      work_.PutBack(task, {range.first, middle});
    }
  }

  // Any device may be lost. Devices after it get new numbers.
  void LoseOne() {
    if (busy_.size() == 1) return;
    const auto lost = busy_.begin() + Below(static_cast<int>(busy_.size()));
    for (const Trial& trial : *lost) {
      Part(trial);
      if (!trial.backup) GiveBack(trial);
    }
    busy_.erase(lost);
    // Devices have new numbers, so their earlier reports belong to others.
    for (int d = 0; d <= static_cast<int>(busy_.size()); ++d) backups_.Forget(d);
    for (int d = 0; d < static_cast<int>(busy_.size()); ++d) Report(d);
    work_.SetDevices(static_cast<int>(busy_.size()));
  }

  void AddOne() {
    if (busy_.size() == 12) return;
    busy_.emplace_back();
    work_.SetDevices(static_cast<int>(busy_.size()));
  }

  // Every device asks and completes once, in any order.
  void Sweep() {
    const int first = Below(work_.devices());
    for (int i = 0; i < work_.devices(); ++i) {
      const int device = (first + i) % work_.devices();
      Ask(device);
      if (testing::Test::HasFatalFailure()) return;
      Complete(device);
    }
  }

  std::mt19937_64 random_;
  LeaseCosts costs_;
  OpenWork work_;
  std::unique_ptr<Policy> policy_;
  std::unique_ptr<Policy> twin_;
  std::vector<std::vector<Trial>> busy_;    // by device: its trials, the oldest first
  std::vector<std::vector<int>> commits_;   // by task and document: number of commits
  std::vector<std::vector<bool>> held_;     // by task and document
  std::vector<std::vector<bool>> doubled_;  // by task and document: whether it was copied
  Corrections costs_of_;
  Backups backups_;
  double now_ = 0;
  int64_t trials_ = 0, copies_ = 0;
  int64_t committed_ = 0, all_ = 0;
};

class EveryPolicy : public testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, GivesEveryDocumentOnceWhateverHappens) {
  int64_t backups = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Driver driver(GetParam(), seed);
    driver.Play();
    if (HasFatalFailure()) return;
    backups += driver.backups();
  }
  EXPECT_EQ(backups > 1000, MakePolicy(GetParam())->backs_up_stragglers()) << backups;
}

INSTANTIATE_TEST_SUITE_P(Policies, EveryPolicy, testing::ValuesIn(PolicyNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace evald
