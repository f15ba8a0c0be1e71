#include "http_server/token_auth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/hash.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::http {
namespace {

namespace fs = std::filesystem;

class TokenFile : public ::testing::Test {
 protected:
  TokenAuth Read(const std::string& text) {
    std::ofstream(path_) << text;
    return TokenAuth::FromFile(path_);
  }
  std::string Complaint(const std::string& text) {
    return CaughtText([&] { Read(text); }, ErrorKind::kUsage);
  }
  TemporaryFolder folder_;
  fs::path path_ = folder_ / "tokens";
};

TEST_F(TokenFile, KnowsWhoHoldsAToken) {
  const TokenAuth auth = Read("# people\n\nci submit sha256:" + Sha256Hex("a-long-token-of-ci") +
                              "\nops admin sha256:" + Sha256Hex("a-long-token-of-ops") + "\n");
  ASSERT_TRUE(auth.Check("a-long-token-of-ci"));
  EXPECT_EQ(auth.Check("a-long-token-of-ci")->name, "ci");
  EXPECT_EQ(auth.Check("a-long-token-of-ops")->role, Role::kAdmin);
  EXPECT_FALSE(auth.Check("a-long-token-of-cj"));
  EXPECT_FALSE(auth.Check(""));
}

TEST_F(TokenFile, NamesOfItsOwnAreRefused) {
  const std::string line = "job:slurm-1 worker sha256:" + Sha256Hex("a-long-token") + "\n";
  EXPECT_EQ(Complaint(line), "");
  const auto reserved = [&] { TokenAuth::FromFile(path_, "job:"); };
  EXPECT_THAT(CaughtText(reserved, ErrorKind::kUsage),
              ::testing::HasSubstr(":1: 'job:slurm-1': names that begin with 'job:'"));
}

TEST_F(TokenFile, EachNameHasATokenOfItsOwn) {
  const std::string hash = " sha256:" + Sha256Hex("a-long-token") + "\n";
  EXPECT_THAT(Complaint("ada read" + hash + "bob admin" + hash),
              ::testing::HasSubstr(":2: 'bob' has the same token as 'ada'"));
  EXPECT_THAT(Complaint("a\x1b[31m read" + hash),
              ::testing::HasSubstr("expected a name of printable characters"));
}

TEST_F(TokenFile, ComplaintsNameFileLineAndRemedy) {
  EXPECT_THAT(Complaint("a read sha256:12\n"), ::testing::HasSubstr(":1: "));
  EXPECT_THAT(Complaint("\na raed sha256:" + Sha256Hex("x")),
              ::testing::HasSubstr("did you mean 'read'"));
  EXPECT_THAT(Complaint("a read plain-token"), ::testing::HasSubstr("sha256sum"));
  EXPECT_THAT(Complaint("a read"), ::testing::HasSubstr("three words"));
  EXPECT_THAT(Complaint("a read sha256:" + Sha256Hex("x") + " more"),
              ::testing::HasSubstr("three words"));
}

TEST_F(TokenFile, IsRefusedWhenOthersMayWriteIt) {
  std::ofstream(path_) << "";
  fs::permissions(path_, fs::perms::group_write, fs::perm_options::add);
  EXPECT_THAT(Complaint("a read sha256:" + Sha256Hex("x")), ::testing::HasSubstr("may write it"));
}

TEST_F(TokenFile, IsRefusedWhenItBelongsToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  std::ofstream(path_) << "";
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  EXPECT_THAT(Complaint("a read sha256:" + Sha256Hex("x")),
              ::testing::HasSubstr("belongs to user 65534"));
}

TEST(TokenAuth, RefusesShortTokens) {
  TokenAuth auth;
  EXPECT_THROW(auth.Add("a", Role::kRead, "short"), Error);
  EXPECT_TRUE(auth.empty());
}

TEST(TokenAuth, RolesIncludeOneAnotherButForWorkers) {
  EXPECT_TRUE(Allows(Role::kAdmin, Role::kSubmit));
  EXPECT_TRUE(Allows(Role::kSubmit, Role::kRead));
  EXPECT_FALSE(Allows(Role::kRead, Role::kSubmit));
  EXPECT_FALSE(Allows(Role::kSubmit, Role::kAdmin));
  EXPECT_FALSE(Allows(Role::kWorker, Role::kRead));
  EXPECT_FALSE(Allows(Role::kSubmit, Role::kWorker));
  EXPECT_TRUE(Allows(Role::kWorker, Role::kWorker));
  EXPECT_TRUE(Allows(Role::kAdmin, Role::kWorker));
  EXPECT_FALSE(Allows(Role::kNone, Role::kRead));
  EXPECT_TRUE(Allows(Role::kWorker, Role::kNone));
}

TEST(TokenAuth, ReadsTheHeader) {
  EXPECT_EQ(BearerToken("Bearer abc"), "abc");
  EXPECT_EQ(BearerToken("bearer  abc "), "abc");
  EXPECT_FALSE(BearerToken("Basic abc"));
  EXPECT_FALSE(BearerToken("Bearer"));
  EXPECT_FALSE(BearerToken("Bearer "));
}

TEST(TokenAuth, TokensMayComeAndGo) {
  std::optional<std::string> known;
  TokenAuth auth;
  EXPECT_TRUE(auth.empty());
  auth.AddChanging([&](std::string_view token) -> std::optional<Principal> {
    if (token != known) return std::nullopt;
    return Principal{"job", Role::kWorker};
  });
  auth.Add("fixed", Role::kAdmin, "0123456789abcdef");
  EXPECT_FALSE(auth.empty());
  EXPECT_FALSE(auth.Check("token-of-a-job-1"));
  known = "token-of-a-job-1";
  EXPECT_EQ(auth.Check("token-of-a-job-1")->name, "job");
  EXPECT_FALSE(auth.Check("token-of-a-job-2"));
  EXPECT_EQ(auth.Check("0123456789abcdef")->name, "fixed");
  known.reset();
  EXPECT_FALSE(auth.Check("token-of-a-job-1"));
}

}  // namespace
}  // namespace evald::http
