// Requests of other hosts' agents besides messages: the connection itself, and the files of their
// work.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/file.h"
#include "base/file_hash.h"
#include "base/jsonl.h"
#include "checkpoint/layout.h"
#include "http_server/file_answer.h"
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
constexpr int64_t kChunksMax = int64_t{1} << 40;
constexpr uint64_t kQuestionBytesMax = 16 * 1024;
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

http::Response FileAnswer(const Request& request, const fs::path& path) {
  return http::FileAnswer(request,
                          UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
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

// The files with the hashes of their chunks. A checkpoint that an earlier version staged has no
// such list: its files come without hashes.
Json FilesOf(const fs::path& folder) {
  const fs::path chunks = folder / ".evald-chunks.json";
  if (fs::exists(chunks))
    return Field<Json>(ParseJson(ReadFile(chunks), chunks.string()), "files", chunks.string());
  Json files = Json::array();
  for (const CheckpointFile& file : ReadCheckpointLayout(folder).files) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  return files;
}

http::Response CheckpointList(const fs::path& folder) {
  Json files = FilesOf(folder);
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

constexpr const char* kFaults[] = {"none", "unreachable", "silent", "wrong", "gone"};

// The agent says how far it is with a checkpoint, and is told from whom to fetch the rest.
http::Response SourceAnswer(const AgentFiles& files, const Request& request) {
  const std::string& agent = request.parameters.at("agent");
  const std::string& fingerprint = request.parameters.at("fingerprint");
  BodyReader body(request.body);
  SourceQuestion question;
  question.have = body.Integer("have", 0, kChunksMax).value_or(0);
  question.total = body.Integer("total", 0, kChunksMax).value_or(0);
  question.current = body.String("source", kPathLengthMax).value_or("");
  question.failed = body.String("failed", kPathLengthMax).value_or("");
  const std::string fault =
      body.Choice("fault", {std::begin(kFaults), std::end(kFaults)}).value_or("none");
  body.Finish();
  question.fault = static_cast<SourceFault>(
      std::find(std::begin(kFaults), std::end(kFaults), fault) - std::begin(kFaults));
  if (question.total > 0 && question.have == question.total) {
    files.sources().Done(agent, fingerprint);
    return JsonAnswer(200, {{"from", "nobody"}});
  }
  const CheckpointSource source = files.sources().Choose(agent, fingerprint, question);
  if (source.from == CheckpointSource::From::kService)
    return JsonAnswer(200, {{"from", "service"}});
  if (source.from == CheckpointSource::From::kNobody) return JsonAnswer(200, {{"from", "nobody"}});
  return JsonAnswer(200, {{"from", "agent"},
                          {"url", source.url},
                          {"authority", source.authority},
                          {"token", source.token}});
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
      "PUT", "/v1/agents/{agent}/sources/{fingerprint}",
      [=](const RequestPtr& request, const Responder& answer) {
        Find(*context, *request, &AgentFiles::Checkpoint, "fingerprint");
        answer(SourceAnswer(FilesFor(*context, *request), *request));
      },
      kQuestionBytesMax);
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
