// Servers on Unix sockets.
#include "http_server/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <optional>

#include "http_server/server.h"
#include "socket_client.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::http::test {
namespace {

using ::testing::HasSubstr;

Router OneRoute() {
  Router router;
  router.Add({"GET", "/who", Role::kRead, [](const auto& request, const Responder& answer) {
                answer(JsonResponse(200, "\"" + request->client + "\""));
              }});
  return router;
}

class UnixSocketTest : public ::testing::Test {
 protected:
  ServerOptions Options() const {
    ServerOptions options;
    options.socket = path_;
    return options;
  }
  std::string Refusal() const {
    return CaughtText([&] { Server(Options(), OneRoute()); }, ErrorKind::kUsage);
  }
  Answer Fetch(const std::string& headers = "") const {
    SocketClient client(path_);
    client.Send(Ask("GET", "/who", headers));
    return client.Receive();
  }
  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "socket";
};

TEST_F(UnixSocketTest, ServesThisUserAndIsGoneAfterwards) {
  {
    const Server server(Options(), OneRoute());
    EXPECT_EQ(server.url(), "unix:" + path_.string());
    EXPECT_EQ(server.port(), 0);
    struct stat info{};
    ASSERT_EQ(::lstat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    EXPECT_EQ(Fetch().body, "\"unix\"");
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, TokensAreInForceIfThereAreAny) {
  ServerOptions options = Options();
  options.tokens.Add("key", Role::kRead, "0123456789abcdef");
  const Server server(options, OneRoute());
  EXPECT_EQ(Fetch().status, 401);
  EXPECT_EQ(Fetch("Authorization: Bearer 0123456789abcdef\r\n").status, 200);
}

TEST_F(UnixSocketTest, ASocketInUseIsLeftAlone) {
  const Server server(Options(), OneRoute());
  EXPECT_THAT(Refusal(), HasSubstr("another process listens there"));
  EXPECT_EQ(Fetch().status, 200);
}

TEST_F(UnixSocketTest, TheSocketOfADeadProcessIsTakenOver) {
  {
    const UniqueFd dead = UnixListener(path_).TakeSocket();
  }
  const std::filesystem::path kept = folder_.path() / "kept";
  {
    UnixListener listener(path_);
    std::filesystem::rename(path_, kept);  // as if its process had been killed
  }
  std::filesystem::rename(kept, path_);
  const Server server(Options(), OneRoute());
  EXPECT_EQ(Fetch().status, 200);
}

TEST_F(UnixSocketTest, AnotherSocketOfItsNameIsNotRemoved) {
  std::optional<UnixListener> first(path_);
  std::filesystem::remove(path_);
  const UnixListener second(path_);
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixSocketTest, OtherFilesAndLongPathsAreRefused) {
  std::ofstream(path_) << "precious";
  EXPECT_THAT(Refusal(), HasSubstr("is no socket"));
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
  path_ = folder_.path() / std::string(120, 'x');
  EXPECT_THAT(Refusal(), HasSubstr("expected 1 to 107"));
  path_ = folder_.path() / "none" / "socket";
  EXPECT_THAT(Refusal(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace evald::http::test
