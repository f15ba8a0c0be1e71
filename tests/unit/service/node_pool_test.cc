// Records of jobs. The pool itself works beside a real Slurm in tests/integration/test_nodes.py.
#include "orchestrator/service/node_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

TEST(NodePoolRecords, AJobComesBackAsItWas) {
  for (const NodeJob::State state : {NodeJob::State::kIntended, NodeJob::State::kSubmitted,
                                     NodeJob::State::kStopping, NodeJob::State::kOver}) {
    const NodeJob job{7, "evald-ab-7", state, "4711", "n1", 1.5, 2.5, 3.5, 4.5, "idle"};
    EXPECT_EQ(DecodeNodeJob(EncodeNodeJob(job)), job);
  }
}

TEST(NodePoolRecords, ADamagedRecordIsNamed) {
  std::string text = EncodeNodeJob({7, "evald-ab-7"});
  text.replace(text.find("intended\""), 8, "intender");
  EXPECT_THAT(CaughtText([&] { DecodeNodeJob(text); }, ErrorKind::kInput),
              HasSubstr("the record of a job: state 'intender' is unknown"));
  EXPECT_THAT(CaughtText([] { DecodeNodeJob("{}"); }, ErrorKind::kInput), HasSubstr("'number'"));
}

}  // namespace
}  // namespace evald
