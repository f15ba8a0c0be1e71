#include "orchestrator/agent/peer_listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <openssl/crypto.h>
#include <unistd.h>

#include <charconv>
#include <set>
#include <vector>

#include "base/file.h"
#include "base/own_folder.h"
#include "base/random_id.h"
#include "evald/error.h"
#include "http_server/file_answer.h"
#include "http_server/own_certificates.h"
#include "orchestrator/fleet/checkpoint_sources.h"

namespace evald {
namespace {

constexpr int kSecretWords = 8;  // 256 bits
// A fetcher has two calls under way. Some more may end before the next ones of a new connection.
constexpr size_t kCallsOfOneAsker = 16;
constexpr const char* kAllAddresses[] = {"::", "0.0.0.0"};  // the first also takes IPv4

// The host's addresses and name, by which others may call it.
std::vector<std::string> NamesOfHost(const std::string& further) {
  std::set<std::string> names;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) == 0) {
    for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
      if (at->ifa_addr == nullptr) continue;
      const int family = at->ifa_addr->sa_family;
      if (family != AF_INET && family != AF_INET6) continue;
      char text[NI_MAXHOST] = {};
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      if (::getnameinfo(at->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0)
        continue;
      // An address of one link ("fe80::1%eth0") is none that others call
      if (std::string_view(text).find('%') == std::string_view::npos) names.insert(text);
    }
    ::freeifaddrs(list);
  }
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0 && host[0] != '\0') names.insert(host);
  if (!further.empty()) names.insert(further);
  return {names.begin(), names.end()};
}

struct Endpoint {
  std::string address;
  uint16_t port = 0;
};

Endpoint ParseListen(const std::string& listen) {
  const size_t colon = listen.rfind(':');
  Endpoint endpoint;
  bool right = colon != std::string::npos;
  if (right) {
    endpoint.address = listen.substr(0, colon);
    if (endpoint.address.starts_with('[') && endpoint.address.ends_with(']'))
      endpoint.address = endpoint.address.substr(1, endpoint.address.size() - 2);
    const char* end = listen.data() + listen.size();
    const auto parsed = std::from_chars(listen.data() + colon + 1, end, endpoint.port);
    right = !endpoint.address.empty() && parsed.ec == std::errc() && parsed.ptr == end;
  }
  if (!right) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--peer-listen '{}': expected an IP address and a port, such as "
                            "10.0.0.7:0 or [::]:8700, or off",
                            listen));
  }
  return endpoint;
}

bool Same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

// The asker whose token this is, if it opens any checkpoint here. A name of its own for each asker,
// whatever it asks for, lets the server count its calls.
std::optional<http::Principal> HolderOf(std::string_view token, const std::string& secret,
                                        const ChunkShelf& shelf) {
  const std::string asker = AskerOf(token);
  if (asker.empty()) return std::nullopt;
  std::optional<http::Principal> holder;
  for (const std::string& fingerprint : shelf.Fingerprints()) {
    if (Same(PeerToken(secret, fingerprint, asker), token))
      holder = http::Principal{asker, http::Role::kWorker};
  }
  return holder;
}

http::Response Give(ChunkShelf* shelf, const std::string& secret, const http::Request& request) {
  const std::string& fingerprint = request.parameters.at("fingerprint");
  const std::string authorization = request.headers.Get("Authorization");
  const auto token = http::BearerToken(authorization);
  if (!token || !Same(PeerToken(secret, fingerprint, request.principal.name), *token))
    throw http::ProblemError({403, "not-granted", "this token is of another checkpoint"});
  const auto range = http::RangeOf(request, UINT64_MAX);
  if (!range) throw http::ProblemError({416, "range", "expected Range: bytes=first-last"});
  ChunkShelf::Opened opened =
      shelf->Open(fingerprint, request.parameters.at("file"), range->first, range->second);
  if (opened.found == ChunkShelf::Found::kNotYet)
    throw http::ProblemError({409, "not-yet", "these bytes are on their way to this host"});
  return http::FileAnswer(request, std::move(opened.fd));  // 404 if it is not open
}

std::unique_ptr<http::Server> Listen(const std::string& listen, http::ServerOptions options,
                                     const http::Router& router) {
  if (!listen.empty()) {
    const Endpoint endpoint = ParseListen(listen);
    options.address = endpoint.address;
    options.port = endpoint.port;
    return std::make_unique<http::Server>(options, router);
  }
  options.address = kAllAddresses[0];
  try {
    return std::make_unique<http::Server>(options, router);
  } catch (const Error&) {  // a host without IPv6
    options.address = kAllAddresses[1];
    return std::make_unique<http::Server>(options, router);
  }
}

}  // namespace

PeerListener::PeerListener(const PeerListenerOptions& options, std::shared_ptr<ChunkShelf> shelf)
    : shelf_(std::move(shelf)), secret_(RandomId(kSecretWords)) {
  MakePrivateFolder(options.folder, "choose another --root");
  const http::OwnCertificates certificates =
      http::KeepOwnCertificates(options.folder, NamesOfHost(options.host));
  authority_ = ReadFile(certificates.authority);
  http::ServerOptions server;
  server.certificate = certificates.certificate;
  server.key = certificates.key;
  server.request.body_bytes_max = 0;
  server.file_bytes_per_second = options.bytes_per_second;
  server.calls_per_token_max = kCallsOfOneAsker;
  server.tokens.AddChanging([shelf = shelf_, secret = secret_](std::string_view token) {
    return HolderOf(token, secret, *shelf);
  });
  http::Router router;
  router.Add(
      {"GET", "/v1/checkpoints/{fingerprint}/{file...}", http::Role::kWorker,
       [shelf = shelf_, secret = secret_](const auto& request, const http::Responder& answer) {
         answer(Give(shelf.get(), secret, *request));
       }});
  server_ = Listen(options.listen, server, router);
}

}  // namespace evald
