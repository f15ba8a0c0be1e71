#include "orchestrator/service/tunnel_wire.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <stdexcept>
#include <string>

namespace evald {
namespace {

class TunnelWireTest : public testing::Test {
 protected:
  TunnelWireTest() {
    ends_.wire->on_closed = [this](const std::string& why) { closed_ = why; };
    ends_.wire->on_line = [](const std::string&) {};
  }
  // Waits until all posted work is done.
  void Settle() {
    loop_.Post([this] { loop_.Stop(); });
    loop_.Run();
    loop_.context().restart();
  }

  Loop loop_;
  TunnelEnds ends_ = MakeTunnel(&loop_);
  std::string closed_ = "-";
};

TEST_F(TunnelWireTest, APeerThatDoesNotReadIsCutAndCostsBoundedMemory) {
  const std::string line(size_t{1} << 20, 'x');
  for (size_t sent = 0; sent <= 2 * kUnsentBytesMax; sent += line.size()) ends_.wire->Send(line);
  EXPECT_EQ(closed_, "-") << "whoever sends does not expect the connection to end meanwhile";
  Settle();
  EXPECT_NE(closed_.find("does not read"), std::string::npos) << closed_;
  EXPECT_TRUE(ends_.tunnel->over());
  EXPECT_EQ(ends_.tunnel->Next(1 << 16), "");
}

TEST_F(TunnelWireTest, WhatIsSentArrivesWholeAndInOrder) {
  std::string sent, arrived;
  for (int i = 0; i < 1000; ++i) {
    const std::string line =
        std::to_string(i) + std::string(static_cast<size_t>(i % 97), 'x') + "\n";
    sent += line;
    ends_.wire->Send(line);
    arrived += ends_.tunnel->Next(31);
  }
  for (std::string next = ends_.tunnel->Next(100); !next.empty(); next = ends_.tunnel->Next(100))
    arrived += next;
  EXPECT_EQ(arrived, sent);
}

TEST_F(TunnelWireTest, NoMoreIsReadThanTheLoopLooksAt) {
  ends_.wire->Read();
  const std::string bytes(size_t{1} << 20, '\n');
  while (!ends_.tunnel->full()) ends_.tunnel->Received(bytes);
  Settle();
  EXPECT_FALSE(ends_.tunnel->full());
}

TEST_F(TunnelWireTest, WhatALineThrowsClosesItsConnectionAlone) {
  ends_.wire->on_line = [](const std::string&) { throw std::runtime_error("of another form"); };
  ends_.wire->Read();
  ends_.tunnel->Received("a line\n");
  Settle();
  EXPECT_NE(closed_.find("of another form"), std::string::npos) << closed_;
}

}  // namespace
}  // namespace evald
