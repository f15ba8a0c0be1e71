// The jobs of launchers in the database.
#include "orchestrator/state/node_job_store.h"

#include <gtest/gtest.h>

#include "orchestrator/state/run_store.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

TEST(NodeJobStore, KeepsJobsByLauncher) {
  const TemporaryFolder folder;
  RunStore store(folder.path());
  Database& database = store.database();
  node_job_store::Save(database, {"slurm", 2, "ab", "second"});
  node_job_store::Save(database, {"slurm", 1, "cd", "first"});
  node_job_store::Save(database, {"other", 1, "ef", "another's"});
  node_job_store::Save(database, {"slurm", 2, "ab", "second again"});
  const std::vector<NodeJobRow> rows = node_job_store::List(database, "slurm");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].record, "first");
  EXPECT_EQ(rows[1].record, "second again");
  EXPECT_EQ(rows[1].token_hash, "ab");
  node_job_store::Remove(database, "slurm", 1);
  EXPECT_EQ(node_job_store::List(database, "slurm").size(), 1U);
  EXPECT_EQ(node_job_store::List(database, "other").size(), 1U);
}

TEST(NodeJobStore, KeepsTheExcludedNodesOfEachLauncher) {
  const TemporaryFolder folder;
  RunStore store(folder.path());
  Database& database = store.database();
  EXPECT_TRUE(node_job_store::Excluded(database, "slurm").empty());
  const node_job_store::ExcludedNodes two = {{"n1", "no agent came"}, {"n2", "no GPUs"}};
  node_job_store::SaveExcluded(database, "slurm", two);
  node_job_store::SaveExcluded(database, "other", {{"n1", "another's"}});
  EXPECT_EQ(node_job_store::Excluded(database, "slurm"), two);
  node_job_store::SaveExcluded(database, "slurm", {{"n2", "no GPUs"}});
  EXPECT_EQ(node_job_store::Excluded(database, "slurm").size(), 1U);
  EXPECT_EQ(node_job_store::Excluded(database, "other").at("n1"), "another's");
}

TEST(NodeJobStore, EachDatabaseHasAnIdentityThatStays) {
  const TemporaryFolder one, other;
  const std::string identity = node_job_store::Identity(RunStore(one.path()).database());
  EXPECT_EQ(identity.size(), 8U);
  EXPECT_EQ(node_job_store::Identity(RunStore(one.path()).database()), identity);
  EXPECT_NE(node_job_store::Identity(RunStore(other.path()).database()), identity);
}

}  // namespace
}  // namespace evald
