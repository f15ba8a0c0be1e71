#include "http_client/transfers.h"

#include <unordered_map>

#include "evald/error.h"
#include "http_client/transfer.h"

namespace evald::http_client {
namespace {

constexpr size_t kIdleHandlesMax = 64;
// libcurl's own limit is four for each call under way, so the last of many would close most.
constexpr long kIdleConnectionsMax = 1024;

void Check(CURLMcode code) {
  if (code == CURLM_OK) return;
  throw Error(ErrorKind::kInfrastructure, fmt::format("libcurl: {}", ::curl_multi_strerror(code)));
}

}  // namespace

struct Transfers::State {
  // Declared in this order: handles are freed before the multi handle that holds connections.
  std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi{nullptr, ::curl_multi_cleanup};
  std::vector<CurlHandle> idle;  // handles of calls that ended; they keep sessions of TLS
  std::unordered_map<CURL*, std::unique_ptr<Transfer>> under_way;

  CurlHandle Handle();
  Ended Take(const CURLMsg& message);
};

Transfers::Transfers() : state_(std::make_unique<State>()) {
  state_->idle.push_back(NewHandle());  // which initialises libcurl
  state_->multi.reset(::curl_multi_init());
  if (!state_->multi) {
    throw Error(ErrorKind::kInfrastructure, "libcurl cannot begin: no memory is left");
  }
  Check(::curl_multi_setopt(state_->multi.get(), CURLMOPT_MAXCONNECTS, kIdleConnectionsMax));
}

Transfers::~Transfers() { CancelAll(); }

CurlHandle Transfers::State::Handle() {
  if (idle.empty()) return NewHandle();
  CurlHandle handle = std::move(idle.back());
  idle.pop_back();
  return handle;
}

void Transfers::Start(uint64_t id, Request request) {
  auto transfer = std::make_unique<Transfer>(state_->Handle(), id, std::move(request));
  CURL* handle = transfer->handle();
  Check(::curl_multi_add_handle(state_->multi.get(), handle));
  state_->under_way.emplace(handle, std::move(transfer));
}

Transfers::Ended Transfers::State::Take(const CURLMsg& message) {
  CURL* handle = message.easy_handle;
  const CURLcode result = message.data.result;
  ::curl_multi_remove_handle(multi.get(), handle);  // ends the life of `message`
  const auto node = under_way.extract(handle);
  Transfer& transfer = *node.mapped();
  Ended ended{transfer.id(), transfer.End(result)};
  if (idle.size() < kIdleHandlesMax) idle.push_back(transfer.TakeHandle());
  return ended;
}

std::vector<Transfers::Ended> Transfers::Poll(std::chrono::milliseconds budget) {
  std::vector<Ended> ended;
  const auto deadline = std::chrono::steady_clock::now() + budget;
  while (true) {
    int running = 0, left = 0;
    Check(::curl_multi_perform(state_->multi.get(), &running));
    while (const CURLMsg* message = ::curl_multi_info_read(state_->multi.get(), &left)) {
      if (message->msg == CURLMSG_DONE) ended.push_back(state_->Take(*message));
    }
    const auto wait =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (!ended.empty() || state_->under_way.empty() || wait.count() <= 0) return ended;
    Check(::curl_multi_poll(state_->multi.get(), nullptr, 0, static_cast<int>(wait.count()),
                            nullptr));
  }
}

size_t Transfers::pending() const { return state_->under_way.size(); }

void Transfers::CancelAll() {
  for (const auto& [handle, transfer] : state_->under_way) {
    ::curl_multi_remove_handle(state_->multi.get(), handle);
  }
  state_->under_way.clear();
}

}  // namespace evald::http_client
