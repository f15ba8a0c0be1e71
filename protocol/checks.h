#pragma once

#include <string>

#include "protocol/agent_messages.h"
#include "protocol/messages.h"

/// The bounds of decoded messages. A decoder calls Check for each message right after reading its
/// members. So later code meets no value of another form, no number that no device can report, and
/// no endless text. Messages come from agents, and anyone with a worker token can write one.
/// Internal to this room.
namespace evald::protocol {

inline constexpr double kSecondsMax = 1e9;              ///< of any duration: 30 years
inline constexpr int64_t kCountMax = int64_t{1} << 50;  ///< of requests, tokens, bytes
/// The most microseconds of any time: sums and differences stay in range
inline constexpr int64_t kMicrosMax = int64_t{1} << 60;
inline constexpr int kWantsMax = 4096;         ///< wants in one message
inline constexpr size_t kNameBytesMax = 1024;  ///< of names, hashes and fingerprints
inline constexpr size_t kPathBytesMax = 4096;
inline constexpr size_t kTextBytesMax = 4096;  ///< of texts for people: a longer text is cut
/// Bytes of an EngineInfo, a load's report, a description of isolation
inline constexpr size_t kEngineBytesMax = 64 * 1024;
inline constexpr size_t kAuthorityBytesMax = 16 * 1024;  ///< of a certificate in PEM
inline constexpr size_t kSpanBytesMax = 16 * 1024;       ///< of a span's args
inline constexpr size_t kDevicesMax = 128;               ///< of one host
inline constexpr int kMetricProcessesMax = 512;          ///< of one host
inline constexpr size_t kStagedMax = 1024;               ///< checkpoints in one host's memory
inline constexpr size_t kHeldBytesMax = 64 * 1024;       ///< of one process's command line and tag

/// Cuts a text for people, on which nothing depends, to kTextBytesMax. A text that was cut is not
/// cut again.
void CutText(std::string* text);

/// Each of these throws Error(kInput) that begins with `where` and names the member. Messages that
/// no process or agent sends are the orchestrator's own and are not checked.
template <typename T>
void Check(T&, const std::string&) {}
void Check(Hello& hello, const std::string& where);
void Check(Loaded& loaded, const std::string& where);
void Check(Want& want, const std::string& where);
void Check(Progress& progress, const std::string& where);
void Check(SliceDone& done, const std::string& where);
void Check(TrialDone& done, const std::string& where);
void Check(TrialFailed& failed, const std::string& where);
void Check(JobDone& done, const std::string& where);
void Check(JobFailed& failed, const std::string& where);
void Check(Job& job, const std::string& where);
void Check(Shortened& shortened, const std::string& where);
void Check(Span& span, const std::string& where);
void Check(AgentHello& hello, const std::string& where);
void Check(AgentPing& ping, const std::string& where);
void Check(AgentReady& ready, const std::string& where);
void Check(FromProcess& from, const std::string& where);
void Check(ProcessEnded& ended, const std::string& where);

}  // namespace evald::protocol
