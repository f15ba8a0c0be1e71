// Stories of one launcher. Times are seconds from 1000 on.
#include "orchestrator/launch/launch_machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evald {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = LaunchMachine::Order::Kind;
using State = NodeJob::State;

const NodeDemand kMuch{.open_s = 1e6};

class LaunchStory : public ::testing::Test {
 protected:
  LaunchStory() { Begin(); }

  void Begin() {
    LaunchLimits limits;
    limits.prefix = "evald-ab-";
    limits.nodes_max = 2;
    limits_ = limits;
    machine_.emplace(limits);
  }

  // The orders, for short: "submit 1", "stop 2".
  std::vector<std::string> Orders() {
    static const std::map<Kind, std::string> kNames = {
        {Kind::kSubmit, "submit"},    {Kind::kStop, "stop"},      {Kind::kStopJob, "stop job"},
        {Kind::kList, "list"},        {Kind::kSave, "save"},      {Kind::kForget, "forget"},
        {Kind::kReadLog, "read log"}, {Kind::kExclude, "exclude"}};
    std::vector<std::string> orders;
    for (const LaunchMachine::Order& order : machine_->TakeOrders()) {
      if (order.kind == Kind::kSave) continue;
      std::string text = kNames.at(order.kind);
      if (order.kind == Kind::kStopJob) text += " " + order.job.job;
      if (order.job.number != 0) text += " " + std::to_string(order.job.number);
      orders.push_back(text);
    }
    return orders;
  }
  std::vector<std::string> Tick(const NodeDemand& demand = {}) {
    machine_->Tick(demand, now_);
    return Orders();
  }
  void Accept(int64_t number, const std::string& job) {
    machine_->Submitted(number, {SubmitAnswer::Outcome::kAccepted, job, ""}, now_);
  }
  static ListedJob Shown(int64_t number, const std::string& job, ListedJob::State state,
                         const std::string& node = "") {
    return {job, "evald-ab-" + std::to_string(number), state, "WORD", "Resources", node};
  }
  static ListedJob Runs(int64_t number, const std::string& job) {
    return Shown(number, job, ListedJob::State::kRunning, "n" + std::to_string(number));
  }
  void List(const std::vector<ListedJob>& jobs) { machine_->Listed(jobs, now_, now_); }
  void Agent(int64_t number, bool busy = true, int devices = 4) {
    machine_->HostIs(number, {.connected = true, .busy = busy, .devices = devices}, now_);
  }
  void Away(int64_t number) { machine_->HostIs(number, {}, now_); }
  const NodeJob& Record(int64_t number) { return machine_->Find(number)->record; }
  std::string Problems() {
    std::string all;
    for (const std::string& problem : machine_->Problems(now_)) all += problem + "\n";
    return all;
  }
  // Two jobs that run, with agents.
  void TwoNodes() {
    Tick(kMuch);
    Accept(1, "71");
    Accept(2, "72");
    List({Runs(1, "71"), Runs(2, "72")});
    Agent(1);
    Agent(2);
    Orders();
  }

  LaunchLimits limits_;
  std::optional<LaunchMachine> machine_;
  double now_ = 1000;
};

TEST_F(LaunchStory, WorkBringsNodesUpToTheMost) {
  EXPECT_THAT(Tick(), IsEmpty());
  EXPECT_THAT(Tick(kMuch), ElementsAre("submit 1", "submit 2", "list"));
  EXPECT_THAT(Tick(kMuch), IsEmpty());
  EXPECT_EQ(Record(1).name, "evald-ab-1");
}

TEST_F(LaunchStory, ANodeWithoutWorkGoesBack) {
  TwoNodes();
  Agent(2, false);
  now_ += limits_.idle_s - 1;
  EXPECT_THAT(Tick(), ElementsAre("list"));
  now_ += 1;
  EXPECT_THAT(Tick(), ElementsAre("stop 2"));
  EXPECT_EQ(Record(2).state, State::kStopping);
  EXPECT_EQ(Record(2).why, "it had no work for 300 s");
  Away(2);
  List({Runs(1, "71"), Shown(2, "72", ListedJob::State::kOver)});
  EXPECT_EQ(Record(2).state, State::kOver);
}

TEST_F(LaunchStory, NodesBelowTheLeastStay) {
  limits_.nodes_min = 1;
  machine_.emplace(limits_);
  EXPECT_THAT(Tick(), ElementsAre("submit 1", "list"));
  Accept(1, "71");
  Agent(1, false);
  now_ += 2 * limits_.idle_s;
  EXPECT_THAT(Tick(), IsEmpty());
}

TEST_F(LaunchStory, AWaitingJobThatIsNotNeededAnyMoreEnds) {
  Tick(kMuch);
  Accept(1, "71");
  Accept(2, "72");
  List({Runs(1, "71"), Shown(2, "72", ListedJob::State::kPending)});
  Agent(1, true);
  Tick();
  now_ += 31;
  EXPECT_THAT(Tick(), Contains("stop 2"));
  EXPECT_EQ(Record(1).state, State::kSubmitted);
}

TEST_F(LaunchStory, ALostAnswerIsFoundInTheList) {
  Tick(kMuch);
  Accept(2, "72");
  machine_->Submitted(1, {SubmitAnswer::Outcome::kUnknown, "", "Socket timed out"}, now_);
  EXPECT_THAT(Problems(), HasSubstr("whether job 'evald-ab-1' was submitted is not known: Socket"));
  now_ += 40;
  List({Shown(1, "71", ListedJob::State::kPending), Shown(2, "72", ListedJob::State::kPending)});
  EXPECT_EQ(Record(1).job, "71");
  EXPECT_EQ(Record(1).state, State::kSubmitted);
  now_ += 100;
  EXPECT_THAT(Tick(kMuch), ElementsAre("list"));
}

TEST_F(LaunchStory, ASubmissionThatTheListNeverShowsCountsAsLostAndIsEndedByItsName) {
  limits_.nodes_max = 1;
  machine_.emplace(limits_);
  Tick(kMuch);
  machine_->Submitted(1, {SubmitAnswer::Outcome::kUnknown, "", "killed"}, now_);
  for (int i = 0; i < 6; ++i, now_ += 35) {
    EXPECT_EQ(Record(1).state, State::kIntended);
    EXPECT_THAT(Tick(kMuch), testing::Not(Contains("submit 2")));
    List({});
  }
  List({});
  EXPECT_EQ(Record(1).state, State::kOver);
  EXPECT_THAT(Orders(), ElementsAre("stop 1"));
  EXPECT_THAT(Tick(kMuch), Contains("submit 2"));
}

TEST_F(LaunchStory, AListFromBeforeTheSubmissionSaysNothing) {
  Tick(kMuch);
  now_ += 1;
  Accept(1, "71");
  for (int i = 0; i < 10; ++i) machine_->Listed({}, 1000, now_ + 1000);
  EXPECT_EQ(Record(1).state, State::kSubmitted);
}

TEST_F(LaunchStory, AJobThatIsNotListedLivesAsLongAsItsAgent) {
  TwoNodes();
  for (int i = 0; i < 20; ++i, now_ += 30) List({Runs(2, "72")});  // slurmctld lost job 1
  EXPECT_EQ(Record(1).state, State::kSubmitted);
  Away(1);
  List({Runs(2, "72")});
  EXPECT_EQ(Record(1).state, State::kOver);
}

TEST_F(LaunchStory, AfterARestartTheRecordedJobsAreTheOnlyOnes) {
  Tick(kMuch);
  Accept(1, "71");
  const std::vector<NodeJob> records = {Record(1), Record(2)};  // 2: killed while it was submitted
  Begin();
  machine_->Restored(records, {}, now_);
  EXPECT_THAT(Tick(kMuch), ElementsAre("list"));
  List({Runs(1, "71"), Runs(2, "72")});
  EXPECT_THAT(Tick(kMuch), IsEmpty());
  EXPECT_EQ(Record(2).job, "72");
}

TEST_F(LaunchStory, AJobOfThisServiceThatNobodyKnowsEnds) {
  TwoNodes();
  List(
      {Runs(1, "71"), Runs(2, "72"), Runs(9, "79"), {"80", "another", ListedJob::State::kRunning}});
  EXPECT_THAT(Orders(), ElementsAre("stop job 79"));
}

TEST_F(LaunchStory, AnAgentThatDoesNotComeIsSaidSoAndItsNodeIsExcluded) {
  limits_.nodes_max = 1;
  machine_.emplace(limits_);
  for (int64_t number = 1; number <= 2; ++number) {
    Tick(kMuch);
    Accept(number, "7");
    List({Shown(number, "7", ListedJob::State::kRunning, "bad")});
    now_ += limits_.agent_patience_s;
    EXPECT_THAT(Tick(kMuch), Contains("read log " + std::to_string(number)));
    machine_->LogEnds(number, "no such file");
    EXPECT_THAT(Problems(), HasSubstr("on bad: its agent has not come within 120 s; its log ends: "
                                      "no such file"));
    EXPECT_EQ(machine_->excluded().size(), number == 2 ? 1u : 0u);
    List({Shown(number, "7", ListedJob::State::kOver)});
    EXPECT_THAT(Tick(kMuch), testing::Not(Contains("submit " + std::to_string(number + 1))));
    now_ += 60 * static_cast<double>(number);  // the pause doubles
  }
  EXPECT_THAT(Problems(), HasSubstr("node bad is not asked for: job 7"));
  machine_->Release("bad");
  EXPECT_THAT(machine_->excluded(), IsEmpty());
}

// On a node that fails at once, no job is ever seen running.
TEST_F(LaunchStory, ANodeWhoseJobsEndBetweenTwoListsIsExcluded) {
  limits_.nodes_max = 1;
  machine_.emplace(limits_);
  for (int64_t number = 1; number <= 2; ++number) {
    Tick(kMuch);
    Accept(number, "7");
    List({Shown(number, "7", ListedJob::State::kOver, "bad")});
    now_ += 60 * static_cast<double>(number);
  }
  ASSERT_EQ(machine_->excluded().count("bad"), 1u);
  EXPECT_THAT(machine_->excluded().at("bad"), HasSubstr("on bad: its agent has not come"));
  EXPECT_EQ(machine_->Problems(now_).size(), 1u) << "the failure is said once";
}

// A job that waits when a node is excluded or released is told so, and keeps its place.
TEST_F(LaunchStory, WaitingJobsAreToldWhichNodesAreExcluded) {
  limits_.retry_s = 1;
  machine_.emplace(limits_);
  Tick(kMuch);
  Accept(1, "71");
  Accept(2, "72");
  const ListedJob waiting = Shown(2, "72", ListedJob::State::kPending);
  const auto fail_on_bad = [&](int64_t number, const std::string& job) {
    List({Shown(number, job, ListedJob::State::kRunning, "bad"), waiting});
    List({Shown(number, job, ListedJob::State::kOver, "bad"), waiting});
    return Orders();
  };
  EXPECT_THAT(fail_on_bad(1, "71"), testing::Not(Contains("exclude 2")));
  now_ += 1;
  EXPECT_THAT(Tick(kMuch), Contains("submit 3")) << "the first pause";
  Accept(3, "73");
  EXPECT_THAT(fail_on_bad(3, "73"), Contains("exclude 2"));
  machine_->Release("bad");
  EXPECT_THAT(Orders(), ElementsAre("exclude 2"));
  machine_->Release("bad");
  EXPECT_THAT(Orders(), IsEmpty());
  now_ += 10;
  Tick(kMuch);
  Accept(4, "74");
  fail_on_bad(4, "74");
  EXPECT_THAT(machine_->excluded(), IsEmpty()) << "the failures before the release count no more";
}

TEST_F(LaunchStory, AnAgentWhoseDevicesComputeNothingGoesBack) {
  Tick(kMuch);
  Accept(1, "71");
  List({Runs(1, "71")});
  machine_->HostIs(1, {.connected = true, .devices = 3, .broken = "its agent has 3 of 4 GPUs"},
                   now_);
  EXPECT_THAT(Tick(kMuch), Contains("stop 1"));
  EXPECT_THAT(Problems(), HasSubstr("job 71 ('evald-ab-1') on n1: its agent has 3 of 4 GPUs"));
}

TEST_F(LaunchStory, SaysWhetherANodeMayCome) {
  limits_.nodes_max = 1;
  machine_.emplace(limits_);
  EXPECT_FALSE(machine_->MoreMayCome(now_)) << "none is asked for";
  Tick(kMuch);
  EXPECT_TRUE(machine_->MoreMayCome(now_));
  Accept(1, "71");
  List({Runs(1, "71")});
  machine_->HostIs(1, {.connected = true, .devices = 4}, now_);
  EXPECT_FALSE(machine_->MoreMayCome(now_)) << "all are there";
  machine_->HostIs(1, {.connected = true, .devices = 4, .broken = "no room"}, now_);
  EXPECT_TRUE(machine_->MoreMayCome(now_)) << "another takes its place";
  machine_->StopAll(now_);
  EXPECT_FALSE(machine_->MoreMayCome(now_));
}

TEST_F(LaunchStory, ANodeIsNotBlamedForWhatNoOtherCanDo) {
  for (int64_t number = 1; number <= 3; ++number) {
    limits_.nodes_max = 1;
    if (number == 1) machine_.emplace(limits_);
    Tick(kMuch);
    Accept(number, "7" + std::to_string(number));
    List({Runs(number, "7" + std::to_string(number))});
    machine_->HostIs(
        number, {.connected = true, .devices = 4, .broken = "no room", .at_fault = false}, now_);
    Tick(kMuch);
    EXPECT_THAT(Problems(), HasSubstr("no room"));
    machine_->HostIs(number, {}, now_);
    List({Shown(number, "7" + std::to_string(number), ListedJob::State::kOver, "n")});
    now_ += 1000;
  }
  EXPECT_TRUE(machine_->excluded().empty());
}

// The agent comes each time, which is no success.
TEST_F(LaunchStory, ANodeThatCanComputeNothingTwiceIsExcluded) {
  const NodeHost broken{.connected = true, .devices = 4, .broken = "no room"};
  for (int64_t number = 1; number <= 2; ++number) {
    const std::string job = "7" + std::to_string(number);
    limits_.nodes_max = 1;
    if (number == 1) machine_.emplace(limits_);
    EXPECT_THAT(Tick(kMuch), Contains("submit " + std::to_string(number)));
    Accept(number, job);
    machine_->HostIs(number, broken, now_);
    EXPECT_THAT(Tick(kMuch), testing::Not(Contains(HasSubstr("stop")))) << "on which node?";
    List({Shown(number, job, ListedJob::State::kRunning, "bad")});
    EXPECT_THAT(Tick(kMuch), Contains("stop " + std::to_string(number)));
    machine_->HostIs(number, {}, now_);
    List({Shown(number, job, ListedJob::State::kOver, "bad")});
    EXPECT_THAT(Problems(), HasSubstr("on bad: no room"));
    now_ += 130;
  }
  EXPECT_EQ(machine_->excluded().count("bad"), 1U);
}

TEST_F(LaunchStory, AReasonOfANodeStaysWhileOthersWork) {
  TwoNodes();
  machine_->HostIs(1, {.connected = true, .devices = 4, .broken = "no room"}, now_);
  Tick(kMuch);
  List({Shown(1, "71", ListedJob::State::kOver), Runs(2, "72")});
  now_ += 130;
  Tick(kMuch);
  Accept(3, "73");
  List({Runs(2, "72"), Runs(3, "73")});
  Agent(3);
  EXPECT_THAT(Problems(), HasSubstr("job 71 ('evald-ab-1') on n1: no room"));
}

TEST_F(LaunchStory, TheReasonOfAnAgentThatIsRefusedIsSaid) {
  Tick(kMuch);
  Accept(1, "71");
  List({Runs(1, "71")});
  machine_->HostIs(1, {.refused = "it is evald 2, and this is 1"}, now_);
  List({Shown(1, "71", ListedJob::State::kOver, "n1")});
  EXPECT_THAT(Problems(), HasSubstr("job 71 ('evald-ab-1') on n1: its agent is refused: it is "
                                    "evald 2, and this is 1"));
  EXPECT_THAT(Orders(), testing::Not(Contains(HasSubstr("read log"))));
}

TEST_F(LaunchStory, NothingIsSubmittedToALauncherThatDoesNotAnswer) {
  Tick(kMuch);
  for (int64_t number = 1; number <= 2; ++number) {
    machine_->Submitted(
        number, {SubmitAnswer::Outcome::kRefused, "", "Unable to contact slurm controller", true},
        now_);
  }
  machine_->ListFailed("squeue fails", now_);
  for (int i = 0; i < 100; ++i) {
    now_ += 40;
    EXPECT_THAT(Tick(kMuch), Contains("list")) << "though no job is known to it";
    machine_->ListFailed("squeue fails", now_);
  }
  EXPECT_EQ(Problems(), "no answer since 1970-01-01 00:16:40 UTC: squeue fails\n");
  List({});
  EXPECT_EQ(Problems(), "");
  EXPECT_THAT(Tick(kMuch), Contains("submit 3")) << "at once";
}

TEST_F(LaunchStory, ALauncherThatAnswersAgainHearsWhatItHasMissed) {
  TwoNodes();
  machine_->StopAll(now_);
  Orders();
  machine_->StopFailed(1, "scancel fails", now_);
  EXPECT_EQ(Problems(), "job 71 ('evald-ab-1') does not end: scancel fails\n");
  machine_->ListFailed("squeue fails", now_);
  EXPECT_EQ(Problems(), "no answer since 1970-01-01 00:16:40 UTC: squeue fails\n");
  now_ += 5;
  List({Runs(1, "71"), Runs(2, "72")});
  EXPECT_THAT(Orders(), ElementsAre("stop 1"));
}

TEST_F(LaunchStory, ARefusedSubmissionIsTriedLessAndLessOften) {
  limits_.nodes_max = 1;
  machine_.emplace(limits_);
  for (int64_t number = 1; number <= 4; ++number) {
    EXPECT_THAT(Tick(kMuch), Contains("submit " + std::to_string(number)));
    machine_->Submitted(number, {SubmitAnswer::Outcome::kRefused, "", "invalid partition"}, now_);
    EXPECT_THAT(Problems(), HasSubstr("is refused: invalid partition"));
    EXPECT_GT(machine_->next_try_at(), now_);
    now_ += 60 * (1 << (number - 1)) - 1;
    EXPECT_THAT(Tick(kMuch), testing::Not(Contains(HasSubstr("submit"))));
    now_ += 1;
  }
}

TEST_F(LaunchStory, AJobThatEndsBeforeItsAgentCameIsAFailure) {
  Tick(kMuch);
  Accept(1, "71");
  Accept(2, "72");
  List({Runs(1, "71"), Runs(2, "72")});
  List({Shown(1, "71", ListedJob::State::kOver), Runs(2, "72")});
  EXPECT_THAT(Problems(), HasSubstr("its agent has not come; the launcher says WORD"));
  EXPECT_THAT(Tick(kMuch), testing::Not(Contains("submit 3")));
}

TEST_F(LaunchStory, ARequeuedJobIsTheSameJob) {
  TwoNodes();
  Away(1);
  now_ += 10;
  List({Shown(1, "71", ListedJob::State::kPending), Runs(2, "72")});
  EXPECT_EQ(Record(1).started_at, 0);
  EXPECT_DOUBLE_EQ(Record(1).used_s, 10);
  now_ += 500;  // it may wait for as long as it must
  EXPECT_THAT(Tick(kMuch), ElementsAre("list"));
  List({Runs(1, "71"), Runs(2, "72")});
  Agent(1);
  EXPECT_EQ(Record(1).state, State::kSubmitted);
}

TEST_F(LaunchStory, NodeHoursOfADayAreBounded) {
  limits_.nodes_max = 1;
  limits_.node_hours_per_day = 1;
  machine_.emplace(limits_);
  Tick(kMuch);
  Accept(1, "71");
  Agent(1);
  now_ += 3600;
  EXPECT_NEAR(machine_->NodeHours(now_), 1, 1e-9);
  Away(1);
  List({Shown(1, "71", ListedJob::State::kOver)});
  EXPECT_THAT(Tick(kMuch), testing::Not(Contains("submit 2")));
  EXPECT_THAT(Problems(), HasSubstr("1.0 of 1 node hours of the last 24 hours are used"));
  now_ += 86400;
  EXPECT_THAT(Tick(kMuch), Contains("submit 2"));
}

TEST_F(LaunchStory, TheLauncherIsAskedAtMostOnceInItsTime) {
  Tick(kMuch);
  int lists = 1;
  for (int i = 0; i < 600; ++i, now_ += 1) {
    for (const std::string& order : Tick(kMuch)) {
      if (order != "list") continue;
      ++lists;
      machine_->ListFailed("slurm_load_jobs error: Unable to contact slurm controller", now_);
    }
    if (i == 0) List({});
  }
  EXPECT_LE(lists, 21);
  EXPECT_THAT(Problems(), HasSubstr("Unable to contact slurm controller"));
}

TEST_F(LaunchStory, AtTheEndAllJobsEnd) {
  TwoNodes();
  machine_->StopAll(now_);
  EXPECT_THAT(Orders(), ElementsAre("stop 1", "stop 2"));
  now_ += 60;
  EXPECT_THAT(Tick(kMuch), ElementsAre("stop 1", "stop 2", "list"));  // told again
}

}  // namespace
}  // namespace evald
