#include "orchestrator/fleet/remote_host.h"

namespace evald {

void RemoteHost::Start(const ProcessSpec& spec) {
  conversation_.Send(protocol::StartProcess{spec.id, spec.program, spec.arguments, spec.tag});
}

void RemoteHost::Send(const std::string& id, const protocol::Message& message) {
  if (files_ != nullptr) files_->Sent(instance_, id, message);
  conversation_.Send(protocol::ToProcess{id, message});
}

RemoteHost::~RemoteHost() {
  if (files_ != nullptr) files_->End(instance_);
}

void RemoteHost::Grant(AgentFiles* files, const std::string& instance, const std::string& owner) {
  files->End(instance_);
  files_ = files;
  instance_ = instance;
  files->Begin(instance_, owner);
}

void RemoteHost::Follow(AgentFiles* files) {
  files->End(instance_);
  files_ = files;
  instance_.clear();
}

void RemoteHost::Kill(const std::string& id) { conversation_.Send(protocol::KillProcess{id}); }

bool RemoteHost::Deliver(const protocol::AgentMessage& message) {
  if (const auto* from = std::get_if<protocol::FromProcess>(&message)) {
    if (files_ != nullptr) files_->Received(instance_, from->message);
    events_.message(from->process, from->message);
  } else if (const auto* ended = std::get_if<protocol::ProcessEnded>(&message)) {
    events_.exited(ended->process, {ended->exit_code, ended->signal, ended->error});
  } else {
    return false;
  }
  return true;
}

}  // namespace evald
