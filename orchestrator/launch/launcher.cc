#include "orchestrator/launch/launcher.h"

#include "base/log.h"
#include "evald/error.h"

namespace evald {

void Launcher::StopUnanswered(const NodeJob& job) const {
  try {
    ProgramCall call = StopCall(job);
    call.given_up = nullptr;
    StartProgram(call);
  } catch (const Error& e) {
    log::Warn("{}", e.what());
  }
}

}  // namespace evald
