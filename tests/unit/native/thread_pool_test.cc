#include "worker/native/thread_pool.h"

#include <gtest/gtest.h>

namespace evald::native {
namespace {

TEST(ThreadPoolTest, EveryTaskOnceInEveryLoop) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    std::vector<int> counts(100);
    for (int loop = 0; loop < 200; ++loop) {
      // Large and small loops, with fewer tasks than threads and with none.
      const int64_t tasks = loop % 3 == 0 ? 100 : loop % 4;
      std::fill(counts.begin(), counts.end(), 0);
      pool.ForEach(tasks, loop % 2 == 0 ? int64_t{1} << 30 : 1, [&](int64_t task, int thread) {
        EXPECT_LT(thread, threads);
        ++counts[static_cast<size_t>(task)];
      });
      for (int64_t i = 0; i < 100; ++i) ASSERT_EQ(counts[static_cast<size_t>(i)], i < tasks);
    }
  }
}

}  // namespace
}  // namespace evald::native
