// A cache of prepared tasks stays within its bound, and never loses a task that a run uses.
#include "prepared/cache.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include "evald/error.h"
#include "fixture.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint64_t kTaskBytes = 1 << 20;
constexpr uint64_t kSmall = kTaskBytes / 2;  // room for a task's folder and small files

class Cache : public testing::Test {
 protected:
  // Three tasks fit, four do not; making room leaves two and the new one.
  static constexpr uint64_t kMost = 3 * kTaskBytes + kSmall;

  Cache() { MakePreparedCache(cache_); }

  // A run that prepares this task: the hold of the run.
  std::unique_ptr<PreparedUse> Prepare(const std::string& key, uint64_t most = kMost) {
    auto use = std::make_unique<PreparedUse>(cache_);
    CacheKeeper keeper(cache_, use->file(), most);
    keeper.Hold(key);
    Write(key);
    keeper.MakeSpace(key, "task-" + key);
    return use;
  }
  void Write(const std::string& name) {
    folder_.Write(("cache/prepared/" + name + "/task.json").c_str(), std::string(kTaskBytes, 'x'));
    UsedAt(name, ++clock_);
  }
  void UsedAt(const std::string& name, int seconds) {
    const timespec times[] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (tasks_ / name).c_str(), times, 0), 0);
  }
  std::vector<std::string> Names() const { return NamesIn(tasks_); }
  static std::vector<std::string> NamesIn(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryFolder folder_;
  fs::path cache_ = folder_ / "cache";
  fs::path tasks_ = cache_ / "prepared";
  int clock_ = 1'000'000;
};

TEST_F(Cache, RemovesTheTasksUsedLeastRecently) {
  for (const char* key : {"a", "b", "c"}) Prepare(key);
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c"));
  UsedAt("a", ++clock_);
  Prepare("d");
  EXPECT_THAT(Names(), ElementsAre("a", "c", "d"));
}

TEST_F(Cache, ATaskThatIsFoundAgainIsUsed) {
  for (const char* key : {"a", "b", "c"}) Prepare(key);
  {
    const PreparedUse use(cache_);
    CacheKeeper(cache_, use.file(), kMost).Hold("a");
  }
  Prepare("d");
  EXPECT_THAT(Names(), ElementsAre("a", "c", "d"));
}

TEST_F(Cache, KeepsTasksThatRunsUse) {
  const auto first = Prepare("a");
  Prepare("b");
  const auto third = Prepare("c");
  Prepare("d");
  EXPECT_THAT(Names(), ElementsAre("a", "c", "d"));
}

TEST_F(Cache, KeepsWhatAnotherRunIsAboutToLookFor) {
  for (const char* key : {"a", "b", "c"}) Prepare(key);
  const PreparedUse use(cache_);
  CacheKeeper(cache_, use.file(), kMost).Hold("a");
  UsedAt("a", 1);
  Prepare("d");
  EXPECT_THAT(Names(), ElementsAre("a", "c", "d"));
}

TEST_F(Cache, RefusesIfTheTasksInUseExceedTheBound) {
  const auto first = Prepare("a"), second = Prepare("b"), third = Prepare("c");
  const Error error = Caught([&] { Prepare("d"); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("task 'task-d'"), HasSubstr("of other runs"),
                                  HasSubstr("'cache_limit'")));
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c", "d"));
  Prepare("e", 5 * kTaskBytes);  // the refused task is in nobody's use
  EXPECT_THAT(Names(), ElementsAre("a", "b", "c", "e"));
}

TEST_F(Cache, RefusesARunWhoseOwnTasksExceedTheBound) {
  const PreparedUse use(cache_);
  CacheKeeper keeper(cache_, use.file(), kMost);
  const Error error = Caught([&] {
    for (const char* key : {"a", "b", "c", "d"}) {
      keeper.Hold(key);
      Write(key);
      keeper.MakeSpace(key, key);
    }
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("task 'd'"), HasSubstr("the run's prepared tasks"),
                                  HasSubstr("'cache_limit'")));
}

TEST_F(Cache, HalfWrittenTasksOfKilledProcessesGoFirst) {
  for (const char* key : {"a", "b"}) Prepare(key);
  Write("c.Xy12Zq");
  Prepare("d");
  EXPECT_THAT(Names(), ElementsAre("a", "b", "d"));
}

TEST_F(Cache, ATaskThatIsBeingWrittenIsKept) {
  const PreparedUse use(cache_);
  CacheKeeper(cache_, use.file(), kMost).Hold("a");
  Write("a.Xy12Zq");
  for (const char* key : {"b", "c", "d"}) Prepare(key);
  EXPECT_THAT(Names(), ElementsAre("a.Xy12Zq", "c", "d"));
}

// A process was killed between the rename and the deletion.
TEST_F(Cache, AnUnfinishedRemovalIsFinished) {
  Write(".removed-0123");
  Prepare("a");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(Cache, ListsOfEndedProcessesHoldNothingAndAreRemoved) {
  for (const char* key : {"a", "b", "c"}) Prepare(key);
  folder_.Write("cache/uses/left-over", "a\n");  // without a lock
  Prepare("d");
  EXPECT_THAT(Names(), ElementsAre("b", "c", "d"));
  EXPECT_THAT(NamesIn(cache_ / "uses"), ElementsAre(".lock"));
}

TEST_F(Cache, ARemovedTaskIsGoneAtOnceAndStaysOpenForItsReaders) {
  const fs::path directory = WriteExample(cache_);
  const PreparedTask task(directory);
  RemovePrepared(directory);
  EXPECT_THAT(Names(), IsEmpty());
  EXPECT_EQ(task.Document(1).target, "t");
  RemovePrepared(directory);  // another process was first
}

TEST_F(Cache, ATaskTakesAtMostItsBytes) {
  PreparedTaskWriter writer(tasks_ / "e", {{"name", "e"}}, 1000);
  writer.Add({0, {{"q", "x"}}, "t", nullptr}, {Scored(0, 0, "c", "d")});
  const Error error = Caught([&] {
    writer.Add({1, {{"q", "x"}}, "t", nullptr}, {Scored(1, 0, std::string(1000, 'c'), "d")});
  });
  EXPECT_EQ(error.kind(), ErrorKind::kInput);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("document 1"), HasSubstr("may take 1000 B"),
                                  HasSubstr("'limits.disk'")));
}

}  // namespace
}  // namespace evald
