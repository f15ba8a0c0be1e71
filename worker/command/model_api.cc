#include "worker/command/model_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/open_files.h"
#include "evald/error.h"
#include "worker/endpoint/key.h"

namespace evald::command {
namespace {

constexpr uint64_t kFilesNeeded = 1024;  // half of them for files that are no connections
// The longest answer; a call that takes longer is ended.
constexpr std::chrono::hours kAnswer{1};

}  // namespace

ModelApi::ModelApi(Engine* engine, const std::filesystem::path& checkpoint) {
  if (auto api = engine->Api()) {
    Take(std::move(*api));
  } else {
    Serve(engine, checkpoint);
  }
}

void ModelApi::Take(ServedApi api) {
  server_alive_ = std::move(api.alive);
  model_ = std::move(api.model);
  // Clients insist on a key, whether or not the server wants one.
  key_ = api.key.empty() ? endpoint::MakeKey() : std::move(api.key);
  if (api.unix_socket.empty()) {
    base_url_ = api.url + "/v1";
    return;
  }
  gate_.emplace(api.unix_socket, key_);
  base_url_ = fmt::format("http://127.0.0.1:{}/v1", gate_->port());
}

void ModelApi::Serve(Engine* engine, const std::filesystem::path& checkpoint) {
  if (checkpoint.empty())
    throw Error(ErrorKind::kInput, "there is no checkpoint whose model could be asked");
  endpoint::ServedModel model = endpoint::ReadServedModel(checkpoint, "", engine->Info());
  model.reports_tokens = engine->reports_tokens();
  model_ = model.name;
  key_ = endpoint::MakeKey();
  endpoint::EndpointOptions options;
  options.key = key_;
  options.time.answer = kAnswer;
  const uint64_t files = RaiseOpenFiles(kFilesNeeded);
  options.connections_max = std::min<size_t>(options.connections_max, files - kFilesNeeded / 2);
  endpoint_.emplace(engine, std::move(model), options, [this] { broken_ = true; });
  base_url_ = endpoint_->url() + "/v1";
}

bool ModelApi::alive() const { return !broken_ && (!server_alive_ || server_alive_()); }

}  // namespace evald::command
