// Requests of other hosts' agents besides messages: the connection itself, and the files of their
// work.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>

#include "base/file.h"
#include "base/file_hash.h"
#include "base/jsonl.h"
#include "checkpoint/layout.h"
#include "http_server/request_parser.h"
#include "orchestrator/api/input.h"
#include "orchestrator/api/routes.h"
#include "orchestrator/api/upload.h"
#include "orchestrator/fleet/agent_files.h"

namespace evald::api {
namespace {

namespace fs = std::filesystem;
using http::ProblemError;
using http::Request;
using http::Responder;
using http::Role;

constexpr uint64_t kPieceBytesMax = http::RequestLimits{}.body_bytes_max;
constexpr int64_t kFileBytesMax = int64_t{1} << 40;
constexpr const char* kProtocol = "evald-agent";

const AgentFiles& Files(const Context& context) {
  if (context.options->agent_files == nullptr)
    throw ProblemError({404, "not-found", "this service has no agents"});
  return *context.options->agent_files;
}

// The files of an agent that connected with the caller's token.
const AgentFiles& FilesFor(const Context& context, const Request& request) {
  const AgentFiles& files = Files(context);
  if (!files.IsOf(request.parameters.at("agent"), request.principal.name)) {
    throw ProblemError({403, "not-granted", "this agent has no work with this file"});
  }
  return files;
}

fs::path Granted(const std::optional<fs::path>& path) {
  if (!path) throw ProblemError({403, "not-granted", "this agent has no work with this file"});
  return *path;
}

// Parses "bytes=10-19" (RFC 9110, 14.1.2): one range with both ends. Nothing if the field is
// absent.
std::optional<std::pair<uint64_t, uint64_t>> RangeOf(const Request& request, uint64_t bytes) {
  const std::string* field = request.headers.Find("Range");
  if (field == nullptr) return std::nullopt;
  uint64_t first = 0, last = 0;
  const char* end = field->data() + field->size();
  const bool known = field->starts_with("bytes=");
  const auto begun = std::from_chars(field->data() + (known ? 6 : 0), end, first);
  const bool dash = known && begun.ec == std::errc() && begun.ptr != end && *begun.ptr == '-';
  const auto ended = dash ? std::from_chars(begun.ptr + 1, end, last) : begun;
  if (!dash || ended.ec != std::errc() || ended.ptr != end || last < first || last >= bytes) {
    throw ProblemError({416,
                        "range",
                        fmt::format("expected Range: bytes=first-last within {} bytes", bytes),
                        "",
                        "",
                        {{"Content-Range", fmt::format("bytes */{}", bytes)}}});
  }
  return std::make_pair(first, last);
}

http::Response FileAnswer(const Request& request, const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw ProblemError({404, "not-found", "there is no such file"});
  }
  const auto bytes = static_cast<uint64_t>(info.st_size);
  const auto range = RangeOf(request, bytes);
  http::Response response;
  response.headers.Add("Content-Type", "application/octet-stream");
  response.headers.Add("Cache-Control", "no-store");
  response.file = std::make_shared<http::FileBody>();
  response.file->fd = std::move(fd);
  response.file->bytes = bytes;
  if (range) {
    response.status = 206;
    response.headers.Add("Content-Range",
                         fmt::format("bytes {}-{}/{}", range->first, range->second, bytes));
    response.file->begin = range->first;
    response.file->bytes = range->second - range->first + 1;
  }
  return response;
}

http::Response PreparedList(const fs::path& folder) {
  Json files = Json::array();
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.starts_with('.') || name.ends_with(".part")) continue;
    const FileHash content = HashOfFile(entry.path());
    files.push_back({{"name", name}, {"bytes", content.bytes}, {"hash", content.hash}});
  }
  return JsonAnswer(200, {{"files", std::move(files)}});
}

http::Response CheckpointList(const fs::path& folder) {
  Json files = Json::array();
  for (const CheckpointFile& file : ReadCheckpointLayout(folder).files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  std::string source;
  try {
    const fs::path record = folder / ".evald-staged.json";
    source = FieldOr<std::string>(ParseJson(ReadFile(record), record.string()), "source", "",
                                  record.string());
  } catch (const Error&) {  // the source only saves the agent a copy over the network
  }
  return JsonAnswer(200, {{"source", source}, {"files", std::move(files)}});
}

// The path of `name` inside a granted folder.
fs::path Inside(const fs::path& folder, const std::string& name) {
  const fs::path path(name);
  for (const fs::path& part : path) {
    if (part == ".." || part == "." || part.empty())
      throw ProblemError({404, "not-found", "there is no such file"});
  }
  if (path.is_absolute()) throw ProblemError({404, "not-found", "there is no such file"});
  return folder / path;
}

// Agents with one token take turns like users: each works for itself.
std::string UserOf(const Request& request) {
  return request.principal.name + "/" + request.parameters.at("agent");
}

void Put(const Context& context, const RequestPtr& request, const Responder& answer) {
  QueryReader query(*request);
  const auto file = query.String("file", kPathLengthMax);
  const auto offset = query.Integer("offset", 0, kFileBytesMax),
             bytes = query.Integer("bytes", 0, kFileBytesMax);
  query.Finish();
  if (!file || !offset || !bytes)
    throw ProblemError({400, "query", "expected file, offset and bytes"});
  const AgentFiles& files = FilesFor(context, *request);
  const std::string& agent = request->parameters.at("agent");
  const auto grant = files.Upload(agent, *file);
  if (!grant) throw ProblemError({403, "not-granted", "this agent has no work with this file"});
  // This request may wait for its turn while the file is reported.
  const auto name = [&files, agent, file = *file](const std::function<void()>& give) {
    return files.Name(agent, file, give);
  };
  const Upload upload{
      grant->file,      agent, request->parameters.at("hash"), static_cast<uint64_t>(*bytes),
      grant->bytes_max, name};
  if (upload.hash.size() != 32 ||
      upload.hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw ProblemError({400, "hash", "expected 32 hexadecimal digits"});
  }
  InBackground(context, UserOf(*request), answer,
               [request, upload, offset = static_cast<uint64_t>(*offset)] {
                 const bool complete = TakePiece(upload, offset, request->body);
                 return JsonAnswer(
                     200, {{"received", offset + request->body.size()}, {"complete", complete}});
               });
}

void Connect(const Context& context, const RequestPtr& request, const Responder& answer) {
  QueryReader(*request).Finish();
  if (!http::EqualsIgnoringCase(request->headers.Get("Upgrade"), kProtocol)) {
    throw ProblemError(
        {426, "upgrade", "expected Upgrade: evald-agent", "", "", {{"Upgrade", kProtocol}}});
  }
  if (!context.options->connect_agent)
    throw ProblemError({404, "not-found", "this service has no agents"});
  http::Response response;
  response.status = 101;
  response.headers.Add("Upgrade", kProtocol);
  response.tunnel = context.options->connect_agent(request->principal.name);
  answer(std::move(response));
}

using Finder = std::optional<fs::path> (AgentFiles::*)(const std::string&,
                                                       const std::string&) const;

fs::path Find(const Context& context, const Request& request, Finder find, const char* name) {
  QueryReader(request).Finish();
  return Granted((FilesFor(context, request).*find)(request.parameters.at("agent"),
                                                    request.parameters.at(name)));
}

}  // namespace

void AddAgentRoutes(http::Router* router, const Context* context) {
  const auto add = [&](const char* method, const char* path, auto handler,
                       uint64_t body_bytes_max) {
    router->Add({method, path, Role::kWorker, handler, body_bytes_max});
  };
  add(
      "GET", "/v1/agents/connect",
      [=](const RequestPtr& request, const Responder& answer) {
        Connect(*context, request, answer);
      },
      0);
  add(
      "GET", "/v1/agents/{agent}/prepared/{key}",
      [=](const RequestPtr& request, const Responder& answer) {
        const fs::path folder = Find(*context, *request, &AgentFiles::Prepared, "key");
        InBackground(*context, UserOf(*request), answer, [folder] { return PreparedList(folder); });
      },
      0);
  add(
      "GET", "/v1/agents/{agent}/prepared/{key}/{file}",
      [=](const RequestPtr& request, const Responder& answer) {
        const fs::path folder = Find(*context, *request, &AgentFiles::Prepared, "key");
        answer(FileAnswer(*request, Inside(folder, request->parameters.at("file"))));
      },
      0);
  add(
      "GET", "/v1/agents/{agent}/checkpoints/{fingerprint}",
      [=](const RequestPtr& request, const Responder& answer) {
        const fs::path folder = Find(*context, *request, &AgentFiles::Checkpoint, "fingerprint");
        InBackground(*context, UserOf(*request), answer,
                     [folder] { return CheckpointList(folder); });
      },
      0);
  add(
      "GET", "/v1/agents/{agent}/checkpoints/{fingerprint}/{file...}",
      [=](const RequestPtr& request, const Responder& answer) {
        const fs::path folder = Find(*context, *request, &AgentFiles::Checkpoint, "fingerprint");
        answer(FileAnswer(*request, Inside(folder, request->parameters.at("file"))));
      },
      0);
  add(
      "GET", "/v1/agents/{agent}/generations/{hash}",
      [=](const RequestPtr& request, const Responder& answer) {
        answer(FileAnswer(*request, Find(*context, *request, &AgentFiles::Generations, "hash")));
      },
      0);
  add(
      "PUT", "/v1/agents/{agent}/files/{hash}",
      [=](const RequestPtr& request, const Responder& answer) { Put(*context, request, answer); },
      kPieceBytesMax);
}

}  // namespace evald::api
