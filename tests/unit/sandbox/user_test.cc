#include "metrics/sandbox/user.h"

#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald::sandbox {
namespace {

OwnIdentity Root(const std::string& map, bool host_root = true) { return {0, host_root, map, map}; }

TEST(SandboxUser, OnAHostIdsAreWhereNoAccountIs) {
  for (const uint32_t turn : {0u, 1u, 12345678u, 0xffffffffu}) {
    const SandboxUser user = PickUser(Root("0 0 4294967295\n"), turn);
    EXPECT_TRUE(user.own_ids);
    EXPECT_GE(user.zygote_id, 0x70000000u);
    EXPECT_LT(user.program_id, 0x80000000u);
    EXPECT_EQ(user.program_id, user.zygote_id + 1);
  }
}

TEST(SandboxUser, InAContainerTheyAreAmongItsOwn) {
  for (const char* map : {"0 0 65536\n", "0 100000 65536\n", "0 1000 1\n1 100000 65535\n"}) {
    for (const uint32_t turn : {0u, 1u, 12345678u, 0xffffffffu}) {
      const SandboxUser user = PickUser(Root(map), turn);
      EXPECT_TRUE(user.own_ids) << map;
      EXPECT_GT(user.zygote_id, 60000u) << map;
      EXPECT_LT(user.program_id, 65534u) << map << "65534 is nobody";
    }
  }
}

TEST(SandboxUser, UsersAndGroupsMustBothBeThere) {
  const OwnIdentity own = {0, true, "0 0 70000\n", "0 0 3000\n"};
  const SandboxUser user = PickUser(own, 7);
  EXPECT_TRUE(user.own_ids);
  EXPECT_GT(user.zygote_id, 0u);
  EXPECT_LT(user.program_id, 3000u);
}

TEST(SandboxUser, TheHostsRootIsNeverAmongThem) {
  for (uint32_t turn = 0; turn < 4; ++turn) {
    const SandboxUser user = PickUser(Root("0 1000 1\n5 0 3\n"), turn);
    EXPECT_TRUE(user.own_ids);
    EXPECT_EQ(user.zygote_id, 6u);
  }
}

TEST(SandboxUser, RootAloneIsRefusedAndAnyoneElseSharesOneId) {
  const Error error = Caught([&] { PickUser(Root("0 0 1\n"), 0); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_NE(error.remedy().find("ordinary user"), std::string::npos);
  EXPECT_FALSE(PickUser(Root("0 1000 1\n", false), 0).own_ids);
  EXPECT_FALSE(PickUser({1000, true, "0 0 4294967295\n", "0 0 4294967295\n"}, 0).own_ids);
}

}  // namespace
}  // namespace evald::sandbox
