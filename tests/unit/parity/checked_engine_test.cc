// Checks of a GPU's engine, with evald's own engine on the processor in its place.
#include "worker/parity/checked_engine.h"

#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/native/native_test_util.h"
#include "tests/unit/support/caught.h"
#include "worker/native/native_engine.h"

namespace evald::parity {
namespace {

namespace fs = std::filesystem;
using native::CheckpointCopy;
using native::GoldenPath;

// An engine that loads `wrong` in place of every other folder, unless it is empty.
class Swapped : public Engine {
 public:
  explicit Swapped(fs::path wrong) : wrong_(std::move(wrong)) {
    EngineOptions options;
    options.name = "native";
    engine_ = MakeNativeEngine(options);
  }
  EngineInfo Info() const override { return engine_->Info(); }
  void Load(const fs::path& directory) override {
    engine_->Load(wrong_.empty() ? directory : wrong_);
  }
  void Submit(uint64_t tag, Request request) override { engine_->Submit(tag, std::move(request)); }
  std::vector<Finished> Step(std::chrono::milliseconds budget) override {
    return engine_->Step(budget);
  }
  size_t pending() const override { return engine_->pending(); }
  void CancelAll() override { engine_->CancelAll(); }
  Json LoadReport() const override { return engine_->LoadReport(); }

 private:
  fs::path wrong_;
  std::unique_ptr<Engine> engine_;
};

class CheckedEngine : public testing::Test {
 protected:
  std::unique_ptr<Engine> Make(const fs::path& wrong = {}) {
    return Checked(std::make_unique<Swapped>(wrong), settings_);
  }
  TemporaryFolder folder_;
  CheckSettings settings_{std::chrono::minutes(5), 1, folder_.path() / "memory"};
};

// Another folder with other weights.
std::unique_ptr<CheckpointCopy> Wrong(const std::string& golden) {
  auto copy = std::make_unique<CheckpointCopy>(golden);
  copy->Clear("layers.0.");
  return copy;
}

TEST_F(CheckedEngine, AnEngineThatAgreesIsCheckedOnce) {
  const auto first = Make();
  first->Load(GoldenPath("llama3"));
  EXPECT_EQ(first->Info().parity, "agrees");
  EXPECT_EQ(first->LoadReport()["parity"]["outcome"], "agrees");
  EXPECT_EQ(first->pending(), 0u);
  const auto second = Make();
  second->Load(GoldenPath("llama3"));
  EXPECT_NE(second->Info().parity.find("skipped: this kind of device has passed"),
            std::string::npos)
      << second->Info().parity;
}

TEST_F(CheckedEngine, AnotherArchitectureIsCheckedAnew) {
  Make()->Load(GoldenPath("llama3"));
  const auto engine = Make();
  engine->Load(GoldenPath("qwen2"));
  EXPECT_EQ(engine->Info().parity, "agrees");
}

TEST_F(CheckedEngine, AnEngineThatDiffersIsBroken) {
  const auto wrong = Wrong("llama3");
  for (int times = 0; times < 2; ++times) {  // a failure is not remembered as a pass
    const auto engine = Make(wrong->path());
    const std::string error = CaughtText([&] { engine->Load(GoldenPath("llama3")); });
    EXPECT_NE(error.find("this device computes otherwise"), std::string::npos) << error;
    EXPECT_NE(error.find("engine: {name: vllm}"), std::string::npos) << error;
    ASSERT_TRUE(engine->Broken());
    EXPECT_EQ(engine->Info().parity.find("differs: on short texts"), 0u);
  }
}

TEST_F(CheckedEngine, NoBudgetIsNoCheck) {
  settings_.budget = std::chrono::milliseconds(0);
  const auto wrong = Wrong("llama3");
  const auto engine = Make(wrong->path());
  engine->Load(GoldenPath("llama3"));
  EXPECT_EQ(engine->Info().parity, "skipped: switched off by `parity_seconds: 0`");
}

// With too little time only the shortest text is compared, and the next load checks again.
TEST_F(CheckedEngine, APassInPartIsNotRemembered) {
  settings_.budget = std::chrono::milliseconds(1);
  for (int times = 0; times < 2; ++times) {
    const auto engine = Make();
    engine->Load(GoldenPath("llama3"));
    EXPECT_EQ(engine->Info().parity, "agrees");
    EXPECT_GT(engine->LoadReport()["parity"]["left_out"].size(), 2u);
  }
}

TEST_F(CheckedEngine, AMemoryOfSomebodyElseIsNotTrusted) {
  fs::create_directory(settings_.memory);
  fs::permissions(settings_.memory, fs::perms::all);
  Make()->Load(GoldenPath("llama3"));
  const auto engine = Make();
  engine->Load(GoldenPath("llama3"));
  EXPECT_EQ(engine->Info().parity, "agrees");
}

}  // namespace
}  // namespace evald::parity
