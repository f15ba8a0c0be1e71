// The table of engines (engines/) and the engines that the worker makes say the same.
#include "worker/make_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engines/engines.h"
#include "evald/error.h"
#include "support.h"

namespace evald {
namespace {

using testing::HasSubstr;

class MakeEngineTest : public testing::Test {
 protected:
  // Settings with the least that the engine cannot do without.
  Json Least(const EngineKind& kind) const {
    Json settings = Json::object();
    while (const auto missing = FindSettingProblem(kind.name, settings)) {
      const auto setting =
          std::find_if(kind.settings.begin(), kind.settings.end(),
                       [&](const EngineSetting& one) { return one.key == missing->key; });
      if (setting == kind.settings.end() || settings.contains(missing->key)) {
        ADD_FAILURE() << kind.name << ": " << missing->key << ": " << missing->problem;
        break;
      }
      settings[missing->key] = setting->use == SettingUse::kReadPath ? Json(folder_.path().string())
                                                                     : Json::array({"server"});
    }
    return settings;
  }

  TemporaryFolder folder_;
};

TEST_F(MakeEngineTest, EveryEngineIsMadeByCodeThatTheWorkerHas) {
  const std::vector<std::string> makers = EngineMakers();
  std::set<std::string> unused(makers.begin(), makers.end());
  for (const EngineKind& kind : Engines()) {
    EXPECT_THAT(makers, testing::Contains(std::string(kind.maker))) << kind.name;
    unused.erase(kind.maker);
  }
  EXPECT_THAT(unused, testing::IsEmpty()) << "no engine is made by this code";
}

TEST_F(MakeEngineTest, EveryEngineSaysOfItselfWhatTheTableSays) {
  for (const EngineKind& kind : Engines()) {
    SCOPED_TRACE(kind.name);
    const Json settings = Least(kind);
    const EngineInfo info = MakeEngine({kind.name, settings, "cpu:0", 1, 1})->Info();
    EXPECT_EQ(info.name, kind.name);
    EXPECT_EQ(info.emulated, kind.makes_answers_up);
    EXPECT_EQ(info.wants_tokens, TakesTokens(kind, settings));
    // A server that has not passed the self-test of a load scores nothing.
    EXPECT_EQ(std::count(info.kinds.begin(), info.kinds.end(), RequestKind::kLoglikelihood),
              kind.server == ServerUse::kNone ? 1 : 0);
  }
}

TEST_F(MakeEngineTest, AnUnknownEngineIsRefusedWithTheNearestKnown) {
  try {
    MakeEngine({"nativ", Json::object(), "cpu:0", 1, 1});
    FAIL() << "there is no such engine";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUsage);
    EXPECT_THAT(e.what(), HasSubstr("unknown engine 'nativ'; did you mean 'native'?"));
  }
}

}  // namespace
}  // namespace evald
