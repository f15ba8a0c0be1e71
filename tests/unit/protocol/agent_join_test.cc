// What a launched agent finds in its variable.
#include "protocol/agent_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald::protocol {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(AgentJoin, ComesBackAsItWas) {
  const AgentJoin join = DecodeJoin(EncodeJoin({"https://h:1", "secret", "PEM\n", "slurm-1", 60}));
  EXPECT_EQ(join.server, "https://h:1");
  EXPECT_EQ(join.token, "secret");
  EXPECT_EQ(join.authority, "PEM\n");
  EXPECT_EQ(join.name, "slurm-1");
  EXPECT_EQ(join.linger_s, 60);
}

TEST(AgentJoin, AWrongMemberIsNamedAndTheTokenIsNotShown) {
  const auto wrong = [](const std::string& text) {
    return CaughtText([&] { DecodeJoin(text); }, ErrorKind::kUsage);
  };
  EXPECT_THAT(wrong("secret"), HasSubstr("the variable EVALD_JOIN"));
  EXPECT_THAT(wrong("{}"), HasSubstr("the key 'server'"));
  const std::string rest = R"(,"token":"secret","authority":"","linger_s":1})";
  const std::string name = wrong(R"({"server":"","name":"a/b")" + rest);
  EXPECT_THAT(name, HasSubstr("key 'name'"));
  EXPECT_THAT(name, Not(HasSubstr("secret")));
  EXPECT_THAT(wrong(R"({"server":"","name":"a","token":"","authority":"","linger_s":-1})"),
              HasSubstr("key 'linger_s'"));
}

}  // namespace
}  // namespace evald::protocol
