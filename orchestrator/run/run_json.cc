#include "orchestrator/run/run_json.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"

namespace evald {

struct RunJson::State {
  std::filesystem::path file;

  // The content of the next write.
  std::mutex mutex;
  std::string text;
  std::vector<WorkThread::Done> dones;
  bool queued = false;  // a write waits that has not taken anything yet

  // Used on the loop only.
  int writes = 0;  // writes that have not reported yet
  std::vector<std::function<void()>> waiting;

  void Heard(const std::vector<WorkThread::Done>& told, const std::optional<Error>& error) {
    --writes;
    for (const WorkThread::Done& done : told) {
      if (done) done(error);
    }
    if (writes > 0) return;
    const auto ready = std::exchange(waiting, {});
    for (const auto& then : ready) then();
  }
};

RunJson::RunJson(RunDirectory directory, WorkThread* files)
    : directory_(std::move(directory)), files_(files), state_(std::make_shared<State>()) {
  state_->file = directory_.path() / "run.json";
}

void RunJson::Update(const Json& members, WorkThread::Done done) {
  directory_.Change(members);
  {
    const std::lock_guard lock(state_->mutex);
    state_->text = directory_.Text();
    state_->dones.push_back(std::move(done));
    if (std::exchange(state_->queued, true)) return;
  }
  ++state_->writes;
  const auto told = std::make_shared<std::vector<WorkThread::Done>>();
  files_->Post(
      [state = state_, told] {
        std::string newest;
        {
          const std::lock_guard lock(state->mutex);
          newest = std::move(state->text);
          told->swap(state->dones);
          state->queued = false;
        }
        WriteFileAtomic(state->file, newest);
      },
      [state = state_, told](const std::optional<Error>& error) { state->Heard(*told, error); });
}

void RunJson::WhenWritten(std::function<void()> then) {
  if (state_->writes == 0) return then();
  state_->waiting.push_back(std::move(then));
}

}  // namespace evald
