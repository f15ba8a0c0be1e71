#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "orchestrator/staging/stager.h"
#include "tests/unit/checkpoint/checkpoint_files.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::testing {

/// Bytes of a linear congruential generator, the same as in tests/oracle/staging_fingerprint.py.
inline std::string Bytes(size_t size, uint32_t seed) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    seed = seed * 1664525u + 1013904223u;
    byte = static_cast<char>(seed >> 24);
  }
  return bytes;
}

/// A checkpoint folder, a root and a state folder for one test.
class StagingTest : public ::testing::Test {
 protected:
  StagingTest() { PutWhole(source_, Bytes(5'000'000, 1)); }

  StagerOptions Options() const {
    StagerOptions options;
    options.root = root_;
    options.state = temp_.path() / "state";
    options.copy.threads = 3;
    return options;
  }
  StagerOptions Keeping(uint64_t bytes = 1 << 30) const {
    StagerOptions options = Options();
    options.keep_bytes = bytes;
    return options;
  }

  /// Names in the root, hidden ones too.
  std::set<std::string> InRoot() const {
    std::set<std::string> names;
    if (!std::filesystem::exists(root_)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  TemporaryFolder temp_;
  std::filesystem::path source_ = temp_.path() / "checkpoint";
  std::filesystem::path root_ = temp_.path() / "root";
};

}  // namespace evald::testing
