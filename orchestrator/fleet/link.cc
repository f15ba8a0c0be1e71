#include "orchestrator/fleet/link.h"

namespace evald {

uint64_t Link::Push(std::string body) {
  kept_bytes_ += body.size();
  kept_.push_back({++sent_, std::move(body)});
  return sent_;
}

bool Link::Acknowledge(uint64_t number) {
  if (number > sent_) return false;
  while (!kept_.empty() && kept_.front().number <= number) {
    kept_bytes_ -= kept_.front().body.size();
    kept_.pop_front();
  }
  return true;
}

std::map<uint64_t, Link::Early>::iterator Link::DropEarly(
    std::map<uint64_t, Early>::iterator early) {
  early_bytes_ -= early->second.bytes;
  return early_.erase(early);
}

std::vector<protocol::AgentMessage> Link::Take(uint64_t number, protocol::AgentMessage message,
                                               size_t bytes) {
  std::vector<protocol::AgentMessage> delivered;
  if (number <= received_) return delivered;
  if (number > received_ + 1) {
    if (early_.size() >= kEarlyMax || early_bytes_ + bytes > kEarlyBytesMax) return delivered;
    if (early_.emplace(number, Early{std::move(message), bytes}).second) early_bytes_ += bytes;
    return delivered;
  }
  delivered.push_back(std::move(message));
  ++received_;
  auto early = early_.begin();
  // It came twice
  if (early != early_.end() && early->first == received_) early = DropEarly(early);
  while (early != early_.end() && early->first == received_ + 1) {
    delivered.push_back(std::move(early->second.message));
    early = DropEarly(early);
    ++received_;
  }
  return delivered;
}

}  // namespace evald
