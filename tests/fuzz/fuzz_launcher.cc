// Arbitrary output of the programs of launchers, and an arbitrary variable of a launched agent:
// each is read or refused.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/cores.h"
#include "evald/error.h"
#include "orchestrator/launch/command_launcher.h"
#include "orchestrator/launch/slurm_text.h"
#include "protocol/agent_join.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto refused = [](const auto& read) {
    try {
      read();
    } catch (const evald::Error&) {
    }
  };
  refused([&] { evald::slurm::ParseList(text, "evald-", 1000); });
  refused([&] { evald::CommandLauncher::ParseList(text, "evald-"); });
  refused([&] { evald::protocol::DecodeJoin(text); });
  evald::slurm::FailedSubmission(text);
  evald::slurm::SecondsOf(text);
  evald::QuotaCores(text, "/absent");
  return 0;
}
