// The logs of the service's worker and metric processes.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"
#include "orchestrator/api/run_files.h"

namespace evald::api {
namespace {

namespace fs = std::filesystem;
using http::Responder;
using http::Role;

constexpr int64_t kTailBytesMax = 1 << 20;
constexpr size_t kLogsMax = 1000;

// Names of the logs, the last changed first. Links and special files are left out when they are
// opened.
std::vector<std::string> LogNames(const fs::path& folder) {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".log") || !entry.is_regular_file(error) || entry.is_symlink(error))
      continue;
    found.emplace_back(entry.last_write_time(error), name);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(found.size(), kLogsMax); ++i)
    names.push_back(std::move(found[i].second));
  return names;
}

http::Response List(const fs::path& folder) {
  Json logs = Json::array();
  for (const std::string& name : LogNames(folder)) {
    const RunFile file = OpenRunFile(folder, name);
    if (file.fd) logs.push_back({{"log", name}, {"bytes", file.bytes}});
  }
  return JsonAnswer(200, {{"logs", std::move(logs)}});
}

// The begin of the first line after `offset`; `offset` itself if the file has none.
uint64_t LineAfter(const RunFile& file, uint64_t offset) {
  std::string piece(64 << 10, '\0');
  for (uint64_t at = offset; at < file.bytes;) {
    const ssize_t got = ::pread(file.fd.get(), piece.data(), piece.size(), static_cast<off_t>(at));
    if (got <= 0) break;
    const size_t newline = std::string_view(piece).substr(0, static_cast<size_t>(got)).find('\n');
    if (newline != std::string_view::npos) return std::min(at + newline + 1, file.bytes);
    at += static_cast<uint64_t>(got);
  }
  return offset;
}

// At most the last `bytes_max` bytes, from a line's beginning. The name in the request is only
// compared.
http::Response Tail(const fs::path& folder, const std::string& asked, uint64_t bytes_max) {
  const std::vector<std::string> names = LogNames(folder);
  const auto name = std::find(names.begin(), names.end(), asked);
  RunFile file = name == names.end() ? RunFile{} : OpenRunFile(folder, *name);
  if (!file.fd)
    throw http::ProblemError(
        {404, "not-found",
         fmt::format("there is no log '{}'", PrintableLine(Shortened(asked, 200)))});
  const uint64_t begin = file.bytes > bytes_max ? file.bytes - bytes_max : 0;
  http::Response response;
  response.headers.Add("Content-Type", "text/plain; charset=utf-8");
  response.headers.Add("Cache-Control", "no-store");
  response.file = std::make_shared<http::FileBody>();
  response.file->begin = begin == 0 ? 0 : LineAfter(file, begin);
  response.file->bytes = file.bytes - response.file->begin;
  response.file->fd = std::move(file.fd);
  return response;
}

}  // namespace

void AddLogRoutes(http::Router* router, const Context* context) {
  router->Add(
      {"GET", "/v1/logs", Role::kAdmin, [=](const RequestPtr& request, const Responder& answer) {
         QueryReader(*request).Finish();
         InBackground(*context, request->principal.name, answer,
                      [context] { return List(context->options->log_dir); });
       }});
  router->Add({"GET", "/v1/logs/{log}", Role::kAdmin,
               [=](const RequestPtr& request, const Responder& answer) {
                 QueryReader query(*request);
                 const int64_t bytes = query.Integer("bytes", 1, kTailBytesMax).value_or(65536);
                 query.Finish();
                 InBackground(*context, request->principal.name, answer,
                              [context, bytes, log = request->parameters.at("log")] {
                                return Tail(context->options->log_dir, log,
                                            static_cast<uint64_t>(bytes));
                              });
               }});
}

}  // namespace evald::api
