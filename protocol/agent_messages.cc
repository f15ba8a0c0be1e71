#include "protocol/agent_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "evald/error.h"
#include "protocol/members.h"

namespace evald::protocol {

template <typename V>
void Members(V& v, AgentHello& m) {
  v("version", m.version);
  v("evald", m.evald);
  v("name", m.name);
  v("instance", m.instance);
  v("pid", m.pid);
  v("session", m.session);
  v("received", m.received);
  v("config", m.config);
  v("devices", m.devices);
  v("threads", m.threads);
  v("metric_processes", m.metric_processes);
  v.Optional("ends_in_s", m.ends_in_s);
  v.Optional("peer_port", m.peer_port);
  v.Optional("peer_host", m.peer_host);
  v.Optional("peer_authority", m.peer_authority);
  v.Optional("peer_secret", m.peer_secret);
}

template <typename V>
void Members(V& v, AgentWelcome& m) {
  v("session", m.session);
  v("resumed", m.resumed);
  v("received", m.received);
}

template <typename V>
void Members(V& v, AgentRefused& m) {
  v("reason", m.reason);
}

template <typename V>
void Members(V& v, AgentPing& m) {
  v("at", m.at);
  v("memory_total", m.memory_total);
  v("memory_free", m.memory_free);
}

template <typename V>
void Members(V& v, AgentPong& m) {
  v("at", m.at);
  v("now", m.now);
}

template <typename V>
void Members(V& v, HeldProcess& m) {
  v("id", m.id);
  v("program", m.program);
  v("arguments", m.arguments);
  v("tag", m.tag);
  v("pid", m.pid);
  v("engine", m.engine);
  v("loading", m.loading);
  v("fingerprint", m.fingerprint);
  v("loaded", m.loaded);
  v("wants", m.wants);
}

template <typename V>
void Members(V& v, AgentReady& m) {
  v("processes", m.processes);
  v("staged", m.staged);
}

template <typename V>
void Members(V& v, FromProcess& m) {
  v("process", m.process);
  v("message", m.message);
}

template <typename V>
void Members(V& v, ProcessEnded& m) {
  v("process", m.process);
  v("exit_code", m.exit_code);
  v("signal", m.signal);
  v("error", m.error);
}

template <typename V>
void Members(V&, AgentLeaving&) {}

template <typename V>
void Members(V&, AgentLeft&) {}

template <typename V>
void Members(V& v, StartProcess& m) {
  v("process", m.process);
  v("program", m.program);
  v("arguments", m.arguments);
  v("tag", m.tag);
}

template <typename V>
void Members(V& v, ToProcess& m) {
  v("process", m.process);
  v("message", m.message);
}

template <typename V>
void Members(V& v, KillProcess& m) {
  v("process", m.process);
}

template <typename V>
void Members(V&, AgentStop&) {}

namespace {

// The alternatives of AgentMessage, in its order.
constexpr const char* kTypes[] = {
    "agent_hello", "agent_welcome", "agent_refused", "ping",  "pong", "agent_ready", "from",
    "ended",       "agent_leaving", "agent_left",    "start", "to",   "kill",        "agent_stop"};

}  // namespace

std::string EncodeBody(const AgentMessage& message) {
  return ToLine(VariantToJson(message, kTypes));
}

std::string EncodeFrame(uint64_t number, uint64_t ack, std::string_view body) {
  return fmt::format("{{\"number\":{},\"ack\":{},{}\n", number, ack, body.substr(1));
}

Frame DecodeFrame(std::string_view line) {
  const Json json = ParseJson(line, "message", kLineValuesMax);
  Frame frame;
  frame.number = Field<uint64_t>(json, "number", "message");
  frame.ack = Field<uint64_t>(json, "ack", "message");
  frame.message = VariantFromJson<AgentMessage>(Field<std::string>(json, "type", "message"), json,
                                                kTypes, " between agent and orchestrator");
  return frame;
}

bool IsHostName(std::string_view name) {
  constexpr size_t kLengthMax = 63;
  return !name.empty() && name.size() <= kLengthMax &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; });
}

}  // namespace evald::protocol
