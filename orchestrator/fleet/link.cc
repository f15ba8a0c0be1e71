#include "orchestrator/fleet/link.h"

namespace evald {
namespace {

constexpr size_t kEarlyMax = 4096;

}  // namespace

uint64_t Link::Push(std::string body) {
  kept_.push_back({++sent_, std::move(body)});
  return sent_;
}

bool Link::Acknowledge(uint64_t number) {
  if (number > sent_) return false;
  while (!kept_.empty() && kept_.front().number <= number) kept_.pop_front();
  return true;
}

std::vector<protocol::AgentMessage> Link::Take(uint64_t number, protocol::AgentMessage message) {
  std::vector<protocol::AgentMessage> delivered;
  if (number <= received_) return delivered;
  if (number > received_ + 1) {
    if (early_.size() < kEarlyMax) early_.emplace(number, std::move(message));
    return delivered;
  }
  delivered.push_back(std::move(message));
  early_.erase(++received_);
  while (!early_.empty() && early_.begin()->first == received_ + 1) {
    delivered.push_back(std::move(early_.begin()->second));
    early_.erase(early_.begin());
    ++received_;
  }
  return delivered;
}

}  // namespace evald
