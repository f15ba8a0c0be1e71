#include "orchestrator/fleet/conversation.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "evald/error.h"

namespace evald {
namespace {

void Silence(Wire* wire) {
  wire->on_line = nullptr;
  wire->on_closed = nullptr;
}

}  // namespace

Conversation::~Conversation() {
  if (!wire_) return;
  Silence(wire_.get());
  wire_->Close("");
}

void Conversation::Reset() {
  Cut("another conversation begins");
  link_.Reset();
  lost_ = false;
}

bool Conversation::Attach(std::shared_ptr<Wire> wire, uint64_t peer_received, Handlers handlers,
                          int64_t now) {
  if (lost_ || !link_.Acknowledge(peer_received)) return false;
  Cut("replaced by a newer connection");
  wire_ = std::move(wire);
  handlers_ = std::move(handlers);
  heard_us_ = now;
  gap_since_us_ = 0;
  wire_->on_line = [this](const std::string& line) { OnLine(line); };
  wire_->on_closed = [this](const std::string& why) {
    const auto closed = std::exchange(wire_, nullptr);
    const auto cut = std::exchange(handlers_, {}).cut;
    if (cut) cut(why);
  };
  for (const Link::Kept& kept : link_.unacknowledged()) {
    wire_->Send(protocol::EncodeFrame(kept.number, link_.received(), kept.body));
  }
  return true;
}

void Conversation::Cut(const std::string& why) {
  if (wire_) std::shared_ptr<Wire>(wire_)->Close(why);
}

void Conversation::Send(const protocol::AgentMessage& message) {
  if (lost_) return;
  std::string body = protocol::EncodeBody(message);
  if (link_.unacknowledged_bytes() + body.size() > limits_.unacknowledged_bytes_max) {
    lost_ = true;  // Tick cuts the connection: the caller does not expect that here
    return link_.Reset();
  }
  const uint64_t number = link_.Push(body);
  if (wire_) wire_->Send(protocol::EncodeFrame(number, link_.received(), body));
}

void Conversation::SendLoose(const protocol::AgentMessage& message) {
  if (wire_) wire_->Send(protocol::EncodeFrame(0, link_.received(), protocol::EncodeBody(message)));
}

void Conversation::OnLine(const std::string& line) {
  if (lost_) return;
  heard_us_ = MonotonicMicros();
  protocol::Frame frame;
  try {
    frame = protocol::DecodeFrame(line);
  } catch (const Error& e) {
    return Cut(std::string("it does not keep to the protocol: ") + e.what());
  }
  if (!link_.Acknowledge(frame.ack))
    return Cut(fmt::format("it acknowledges message {}, which was never sent", frame.ack));
  // A copy: handling one message may end the connection, and the others are still delivered
  const auto wire = wire_;
  const auto deliver = handlers_.deliver;
  if (frame.number == 0) return deliver(frame.message);
  for (const protocol::AgentMessage& message :
       link_.Take(frame.number, std::move(frame.message), line.size()))
    deliver(message);
  if (!link_.gap()) gap_since_us_ = 0;
  if (link_.gap() && gap_since_us_ == 0) gap_since_us_ = heard_us_;
}

void Conversation::Tick(int64_t now) {
  if (!wire_) return;
  if (lost_) {
    Cut("it has not acknowledged the messages sent to it");
  } else if (now - heard_us_ > limits_.silence_max_us) {
    Cut(fmt::format("silent for {} s", (now - heard_us_) / 1'000'000));
  } else if (gap_since_us_ != 0 && now - gap_since_us_ > limits_.gap_max_us) {
    Cut(fmt::format("message {} did not come", link_.received() + 1));
  }
}

}  // namespace evald
