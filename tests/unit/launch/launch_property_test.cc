// A launcher that loses answers, forgets jobs and starts them late, a service that is killed at any
// moment, and agents that come and go, all at random.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "orchestrator/launch/launch_machine.h"

namespace evald {
namespace {

using Kind = LaunchMachine::Order::Kind;

class World {
 public:
  explicit World(unsigned seed) : random_(seed), machine_(Limits()) {}

  static LaunchLimits Limits() {
    LaunchLimits limits;
    limits.prefix = "evald-x-";
    limits.nodes_max = 3;
    limits.idle_s = 60;
    return limits;
  }

  void Step(const NodeDemand& demand) {
    now_ += 1 + Draw(10);
    for (auto& [id, job] : jobs_) {
      if (job.state == 0 && Chance(0.2)) job.state = 1;
      if (job.state == 1 && !job.agent && Chance(0.3)) job.agent = true;
      if (job.state == 1 && Chance(0.005)) End(&job);  // preempted, or its time is up
      if (Chance(0.002)) job.listed = false;           // the launcher forgets it
    }
    TellHosts();
    if (Chance(0.02)) Restart();
    machine_.Tick(demand, now_);
    Carry();
  }

  int Alive() const {
    return static_cast<int>(std::count_if(jobs_.begin(), jobs_.end(),
                                          [](const auto& job) { return job.second.state < 2; }));
  }
  int submissions_of_one_name_most() const {
    int most = 0;
    for (const auto& [name, count] : submissions_) most = std::max(most, count);
    return most;
  }
  size_t submissions() const { return submissions_.size(); }
  void StopAll() { machine_.StopAll(now_); }

 private:
  struct Job {
    std::string name;
    int state = 0;  // waits, runs, over
    bool agent = false, listed = true;
  };

  double Uniform() { return std::uniform_real_distribution<>(0, 1)(random_); }
  bool Chance(double share) { return Uniform() < share; }
  double Draw(double most) { return most * Uniform(); }
  static void End(Job* job) {
    job->state = 2;
    job->agent = false;
  }

  void TellHosts() {
    for (const auto& [id, job] : jobs_) {
      for (const auto& [number, known] : machine_.jobs()) {
        if (known.record.name != job.name) continue;
        machine_.HostIs(
            number, {.connected = job.agent, .busy = job.agent && Chance(0.9), .devices = 1}, now_);
        break;
      }
    }
  }

  void Restart() {
    std::vector<NodeJob> records;
    for (const auto& [number, record] : saved_) records.push_back(record);
    const std::map<std::string, std::string> excluded = machine_.excluded();
    machine_ = LaunchMachine(Limits());
    machine_.Restored(records, excluded, now_);
  }

  void Carry() {
    for (const LaunchMachine::Order& order : machine_.TakeOrders()) {
      if (Chance(0.01)) return Restart();  // killed between two orders
      if (order.kind == Kind::kForget) {
        saved_.erase(order.job.number);
      } else if (order.job.number != 0) {
        saved_[order.job.number] = order.job;
      }
      switch (order.kind) {
        case Kind::kSubmit:
          Submit(order.job);
          break;
        case Kind::kStop:
          if (Chance(0.2)) {
            machine_.StopFailed(order.job.number, "time-out", now_);
            break;
          }
          for (auto& [id, mine] : jobs_) {
            if (mine.name == order.job.name) End(&mine);
          }
          break;
        case Kind::kStopJob:
          End(&jobs_.at(std::stoi(order.job.job)));
          break;
        case Kind::kList:
          List();
          break;
        default:
          break;
      }
    }
  }

  void Submit(const NodeJob& job) {
    const double luck = Uniform();
    const int id = next_id_++;
    if (luck > 0.1) {
      jobs_[id] = {job.name};
      ++submissions_[job.name];
    }
    const int64_t number = job.number;
    if (luck > 0.3) {
      machine_.Submitted(number, {SubmitAnswer::Outcome::kAccepted, std::to_string(id), ""}, now_);
    } else if (luck < 0.05) {
      machine_.Submitted(number, {SubmitAnswer::Outcome::kRefused, "", "no"}, now_);
    } else {
      machine_.Submitted(number, {SubmitAnswer::Outcome::kUnknown, "", "time-out"}, now_);
    }
  }

  void List() {
    if (Chance(0.1)) return machine_.ListFailed("away", now_);
    std::vector<ListedJob> listed;
    for (const auto& [id, job] : jobs_) {
      if (!job.listed) continue;
      constexpr ListedJob::State kStates[] = {ListedJob::State::kPending,
                                              ListedJob::State::kRunning, ListedJob::State::kOver};
      listed.push_back({std::to_string(id), job.name, kStates[job.state], "WORD", "", "n1"});
    }
    machine_.Listed(listed, now_, now_);
  }

  std::mt19937 random_;
  LaunchMachine machine_;
  std::map<int64_t, NodeJob> saved_;
  std::map<int, Job> jobs_;
  std::map<std::string, int> submissions_;
  int next_id_ = 1;
  double now_ = 1000;
};

TEST(LaunchProperty, NothingIsSubmittedTwiceAndNothingStaysBehind) {
  size_t submissions = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    World world(seed);
    for (int i = 0; i < 400; ++i) world.Step({.open_s = i % 200 < 100 ? 1e5 : 0});
    world.StopAll();
    for (int i = 0; i < 400 && world.Alive() > 0; ++i) {
      world.StopAll();  // also after a restart
      world.Step({});
    }
    EXPECT_LE(world.submissions_of_one_name_most(), 1) << "seed " << seed;
    EXPECT_EQ(world.Alive(), 0) << "seed " << seed;
    submissions += world.submissions();
  }
  EXPECT_GT(submissions, 1000u);
}

}  // namespace
}  // namespace evald
