#include "orchestrator/fleet/stream_wire.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"

namespace evald {
namespace {

using Socket = boost::asio::local::stream_protocol::socket;

class StreamWireTest : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    Socket socket(loop_.context());
    socket.assign(boost::asio::local::stream_protocol(), ends[0]);
    other_.reset(ends[1]);
    wire_ = std::make_shared<StreamWire<Socket>>(std::move(socket));
  }
  // Reads until `count` lines have come.
  void ReadLines(size_t count) {
    wire_->on_line = [this, count](const std::string& line) {
      lines_.push_back(line);
      if (lines_.size() == count) loop_.Stop();
    };
    wire_->Read();
    loop_.Run();
  }

  Loop loop_;
  UniqueFd other_;
  std::shared_ptr<StreamWire<Socket>> wire_;
  std::vector<std::string> lines_;
};

// The other end is silent: it may wait for the answer to its first line.
TEST_F(StreamWireTest, ALineThatCameBeforeIsDeliveredThoughNoMoreCome) {
  wire_->Feed("first\nsecond\nthi");
  loop_.After(std::chrono::milliseconds(60'000), [this] { loop_.Stop(); });
  ReadLines(2);
  EXPECT_EQ(lines_, (std::vector<std::string>{"first", "second"}));
}

TEST_F(StreamWireTest, ALineThatCameInPartIsDeliveredWhole) {
  wire_->Feed("fir");
  ASSERT_EQ(::send(other_.get(), "st\nsecond\n", 10, 0), 10);
  ReadLines(2);
  EXPECT_EQ(lines_, (std::vector<std::string>{"first", "second"}));
}

}  // namespace
}  // namespace evald
