#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/service/run_service.h"

namespace evald {

/// A receiver of events. Set by the service's configuration, never by a request.
struct WebhookTarget {
  std::string url;     ///< http or https
  std::string secret;  ///< signs the calls; "" sends them unsigned
  std::vector<std::string>
      events;  ///< types ("run.state"), or prefixes ("run."); empty: all but run.progress
  std::chrono::milliseconds timeout{10'000};
  int attempts_max = 8;
  std::chrono::milliseconds first_delay{1000};  ///< doubled with each failure, to five minutes
};

struct WebhookStatistics {
  uint64_t delivered = 0;
  uint64_t failed = 0;   ///< given up after all attempts, or refused by the receiver
  uint64_t dropped = 0;  ///< the queue was full
  uint64_t waiting = 0;
};

/// Posts events to URLs. Users take turns at each URL; the events of one user go in order. Each URL
/// has a thread of its own, so that a receiver that does not answer delays no posts to others. Each
/// event is delivered at least once or counted as lost. Waiting events are lost with the process;
/// that fails no run. Each call has the fields Evald-Delivery (an id, the same in each attempt),
/// Evald-Event (the type) and, with a secret, Evald-Signature: t=<seconds since
/// 1970>,v1=<HMAC-SHA256 of
/// "<t>.<body>" in hexadecimal>.
class Webhooks {
 public:
  /// Posts events from now on. `service` must outlive this. Throws Error(kUsage) for a URL that is
  /// neither http nor https.
  Webhooks(RunService* service, std::vector<WebhookTarget> targets);
  ~Webhooks();

  /// Ends the threads and gives up calls under way. Do not call it from the service's callbacks.
  void Stop();
  WebhookStatistics statistics() const;  ///< any thread

 private:
  struct Hook;
  std::vector<std::unique_ptr<Hook>> hooks_;
};

/// The value of Evald-Signature.
std::string WebhookSignature(std::string_view secret, int64_t seconds, std::string_view body);

/// Whether `target` asks for events of `type`.
bool Wants(const WebhookTarget& target, std::string_view type);

}  // namespace evald
