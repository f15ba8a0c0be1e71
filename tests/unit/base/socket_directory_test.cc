#include "base/socket_directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

namespace evald {
namespace {

namespace fs = std::filesystem;

// Each owner that begins removes the folders of owners that are gone. It must not take a folder
// whose owner is just about to lock it for one of these.
TEST(SocketDirectory, OwnersThatBeginAtOnceKeepTheirFolders) {
  std::atomic<int> lost{0};
  std::vector<std::thread> owners;
  for (int owner = 0; owner < 8; ++owner) {
    owners.emplace_back([&lost] {
      for (int round = 0; round < 300; ++round) {
        const SocketDirectory directory;
        if (!fs::exists(directory.path() / "lock")) ++lost;
      }
    });
  }
  for (std::thread& owner : owners) owner.join();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace evald
