// Serves the REST interface over a service in memory, for testers outside this program. Prints its
// URL and serves until standard input ends.
#include <fmt/format.h>

#include <cstdio>

#include "agent_work.h"
#include "memory_service.h"
#include "orchestrator/api/api_server.h"
#include "tests/unit/support/temporary_folder.h"

int main() {
  const evald::TemporaryFolder folder;
  evald::test::MemoryService service(folder.path());
  for (int i = 0; i < 3; ++i)
    service.Submit({"tasks: [sums]", "", {}, "", "demo", 0, ""}, [](auto) {});
  service.Finish("run-1");
  evald::test::MemoryWatches watches;
  evald::AgentFiles agent_files;
  evald::test::GiveWork(folder.path(), &agent_files);
  evald::ApiOptions options;
  options.agent_files = &agent_files;
  options.watches = &watches;
  options.http.requests_per_second = 1e6;
  options.http.requests_burst = 1e6;
  evald::ApiServer server(&service, options);
  fmt::print("{}\n", server.url());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
