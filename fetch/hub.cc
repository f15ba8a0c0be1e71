#include "fetch/hub.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "http_client/url.h"

namespace evald::fetch {
namespace {

using http_client::Request;
using http_client::Response;

constexpr size_t kFilesMax = 100'000;
constexpr int kPagesMax = 1'000;
constexpr uint64_t kFileBytesMax = uint64_t{1} << 44;  // 100,000 of them still have a sum
constexpr size_t kValuesMax = 5'000'000;
constexpr size_t kPathBytesMax = 1024;
constexpr size_t kCommitDigits = 40;
constexpr size_t kTextBytesMax = 16u << 20;

const char* KindOf(const HubRepository& repository) {
  return repository.kind == HubKind::kDataset ? "datasets" : "models";
}

const char* OneOf(const HubRepository& repository) {
  return repository.kind == HubKind::kDataset ? "dataset" : "model";
}

// Percent-encoded, but for letters, digits, "-._~" and what `also` holds.
std::string Quoted(std::string_view text, std::string_view also) {
  std::string quoted;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos ||
                       also.find(c) != std::string_view::npos;
    quoted += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return quoted;
}

std::string ApiUrl(const Access& access, const HubRepository& repository) {
  return fmt::format("{}/api/{}/{}", access.endpoint, KindOf(repository), repository.name);
}

std::string FileUrl(const Access& access, const HubRepository& repository,
                    const std::string& commit, const std::string& path) {
  return fmt::format("{}/{}{}/resolve/{}/{}", access.endpoint,
                     repository.kind == HubKind::kDataset ? "datasets/" : "", repository.name,
                     Quoted(commit, ""), Quoted(path, "/"));
}

bool IsCommit(const std::string& text) {
  return text.size() == kCommitDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string CodeOf(const Response& response) {
  const auto found = response.fields.find("x-error-code");
  return found == response.fields.end() ? "" : found->second;
}

// The hub answers 401 also for a repository that is not there, so that nobody learns of private
// ones.
Error HubRefusal(const Access& access, const HubRepository& repository, const std::string& url,
                 const Response& response) {
  const std::string code = CodeOf(response), page = repository.Page(access.endpoint);
  const std::string what =
      fmt::format("{}: the {} {}", http_client::Shown(url), OneOf(repository), repository.name);
  const bool denied = response.status == 401 || response.status == 403;
  if (code == "GatedRepo") {
    return Error(
        ErrorKind::kInput, what + " is gated: its authors ask everyone to accept terms",
        access.token.empty()
            ? fmt::format("accept the terms at {}, and give your token (HF_TOKEN, or 'hf "
                          "auth login')",
                          page)
            : fmt::format("accept the terms at {}; the token that was given is not let in", page));
  }
  if (code == "RevisionNotFound")
    return Error(ErrorKind::kInput, what + " has no such revision", "see the branches at " + page);
  if (code == "EntryNotFound")
    return Error(ErrorKind::kInput, what + " has no such file at this commit", "see " + page);
  if (denied || (response.status == 404 && (code == "RepoNotFound" || code.empty()))) {
    return Error(
        ErrorKind::kInput,
        fmt::format("{} is not there, or is private or gated (status {})", what, response.status),
        access.token.empty()
            ? fmt::format("look at {}; if it asks for terms, accept them and give your "
                          "token (HF_TOKEN, or 'hf auth login')",
                          page)
            : "look at " + page);
  }
  return RefusalOf(url, response);
}

void RefusePageOf(const std::string& url, const Response& response) {
  const auto type = response.fields.find("content-type");
  if (type == response.fields.end() || !type->second.starts_with("text/html")) return;
  throw Error(
      ErrorKind::kInput,
      http_client::Shown(url) + ": the server sends a web page (text/html) in place of its answer",
      "check that the endpoint is a hub's, and whether a proxy asks to log in");
}

// Link: <https://host/api/...&cursor=...>; rel="next"
std::string NextPage(const Access& access, const Response& response) {
  const auto link = response.fields.find("link");
  if (link == response.fields.end()) return "";
  for (const std::string& part : Split(link->second, ',')) {
    const size_t open = part.find('<'), close = part.find('>');
    if (open == std::string::npos || close == std::string::npos || close < open ||
        part.find("rel=\"next\"", close) == std::string::npos) {
      continue;
    }
    const std::string url = part.substr(open + 1, close - open - 1);
    // A mirror may pass on the link of the hub that it mirrors.
    const size_t api = url.rfind("/api/", url.find('?'));
    if (api != std::string::npos) return access.endpoint + url.substr(api);
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the list of files goes on at '{}', which is not of the hub's API",
                            http_client::Shown(access.endpoint), Shortened(url, 200)),
                "check the endpoint: a mirror must pass the hub's header Link on");
  }
  return "";
}

HubFile FileOf(const Json& entry, const std::string& where) {
  HubFile file;
  file.path = Field<std::string>(entry, "path", where);
  file.bytes = Field<uint64_t>(entry, "size", where);
  const Json lfs = FieldOr<Json>(entry, "lfs", Json(), where);
  if (lfs.is_object()) {
    file.sha256 = FieldOr<std::string>(lfs, "oid", "", where);
    file.bytes = FieldOr<uint64_t>(lfs, "size", file.bytes, where);
  } else {
    file.git_blob = FieldOr<std::string>(entry, "oid", "", where);
  }
  if (file.bytes > kFileBytesMax) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the repository lists the file '{}' with {}, expected at most {}",
                            where, file.path, HumanBytes(file.bytes), HumanBytes(kFileBytesMax)));
  }
  if (const std::string wrong = WrongWithPath(file.path); !wrong.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the repository lists the file '{}', whose name {}", where,
                            file.path, wrong));
  }
  return file;
}

}  // namespace

std::string HubRepository::Page(const std::string& endpoint) const {
  std::string shown = http_client::Shown(endpoint);
  while (shown.ends_with('/')) shown.pop_back();
  return fmt::format("{}/{}{}", shown, kind == HubKind::kDataset ? "datasets/" : "", name);
}

void RequireRepositoryName(const std::string& name) {
  const std::vector<std::string> parts = Split(name, '/');
  const bool sound = !name.empty() && parts.size() <= 2 &&
                     std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
                       return !part.empty() && part.front() != '.' && part.front() != '-' &&
                              part.size() <= 96 && part.find("..") == std::string::npos &&
                              Quoted(part, "") == part && part.find('~') == std::string::npos;
                     });
  if (sound) return;
  throw Error(ErrorKind::kInput,
              fmt::format("found '{}' as the name of a dataset, expected owner/name of the hub",
                          Shortened(name, 200)));
}

std::string WrongWithPath(const std::string& path) {
  if (path.empty() || path.size() > kPathBytesMax) return "is empty or too long";
  if (path.front() == '/') return "begins with a slash";
  for (const std::string& part : Split(path, '/')) {
    if (part == "..") return "leads out of its folder ('..')";
    if (part.empty() || part == ".") return "has an empty part";
  }
  const bool plain = std::none_of(path.begin(), path.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
  });
  return plain && IsUtf8(path) ? "" : "has a control character, a backslash or no valid text";
}

std::vector<HubFile> ParseFileList(const std::string& body, const std::string& where) {
  const Json page = ParseJson(body, where, kValuesMax);
  if (!page.is_array())
    throw Error(ErrorKind::kInput, where + ": expected a list of files, found other JSON");
  std::vector<HubFile> files;
  for (const Json& entry : page) {
    if (FieldOr<std::string>(entry, "type", "file", where) == "file")
      files.push_back(FileOf(entry, where));
  }
  return files;
}

Answered Hub::Get(const std::string& url) {
  Request request;
  request.url = url;
  request.gzip = true;
  return caller_.Get(request);
}

std::optional<std::string> Hub::FindCommit(const HubRepository& repository,
                                           const std::string& revision) {
  RequireRepositoryName(repository.name);
  const std::string url =
      fmt::format("{}/revision/{}", ApiUrl(access(), repository), Quoted(revision, ""));
  const Answered answer = Get(url);
  if (CodeOf(answer.response) == "RevisionNotFound") return std::nullopt;
  if (!answer.response.ok()) {
    if (!answer.response.answered()) throw RefusalOf(url, answer.response);
    throw HubRefusal(access(), repository, url, answer.response);
  }
  RefusePageOf(url, answer.response);
  const std::string where = http_client::Shown(url);
  std::string commit =
      Field<std::string>(ParseJson(answer.response.body, where, kValuesMax), "sha", where);
  if (IsCommit(commit)) return commit;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: found '{}' as the commit (sha), expected 40 hexadecimal digits",
                          where, Shortened(commit, 100)));
}

std::string Hub::Commit(const HubRepository& repository, const std::string& revision) {
  if (auto commit = FindCommit(repository, revision)) return *commit;
  throw Error(
      ErrorKind::kInput,
      fmt::format("the {} {} has no revision '{}'", OneOf(repository), repository.name, revision),
      "see the branches at " + repository.Page(access().endpoint));
}

std::vector<HubFile> Hub::Files(const HubRepository& repository, const std::string& commit) {
  RequireRepositoryName(repository.name);
  std::vector<HubFile> files;
  std::string url = fmt::format("{}/tree/{}?recursive=true&expand=false",
                                ApiUrl(access(), repository), Quoted(commit, ""));
  for (int pages = 1; !url.empty(); ++pages) {
    const Answered answer = Get(url);
    if (!answer.response.answered()) throw RefusalOf(url, answer.response);
    if (!answer.response.ok()) throw HubRefusal(access(), repository, url, answer.response);
    RefusePageOf(url, answer.response);
    const std::string where = http_client::Shown(url);
    const std::vector<HubFile> page = ParseFileList(answer.response.body, where);
    files.insert(files.end(), page.begin(), page.end());
    if (files.size() > kFilesMax || pages > kPagesMax) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: the repository has more than {} files, or a list of more than "
                              "{} pages",
                              where, kFilesMax, kPagesMax));
    }
    std::string next = NextPage(access(), answer.response);
    if (next == url) next.clear();
    url = std::move(next);
  }
  return files;
}

Source Hub::SourceOf(const HubRepository& repository, const std::string& commit,
                     const HubFile& file) const {
  Source source;
  source.url = FileUrl(access(), repository, commit, file.path);
  source.bytes = file.bytes;
  source.sha256 = file.sha256;
  source.git_blob = file.git_blob;
  source.refusal = [access = &access(), repository, url = source.url](const Response& response) {
    return HubRefusal(*access, repository, url, response);
  };
  return source;
}

std::string Hub::Read(const HubRepository& repository, const std::string& commit,
                      const HubFile& file) {
  const Source source = SourceOf(repository, commit, file);
  Request request;
  request.url = source.url;
  request.limits.body_bytes_max = kTextBytesMax;
  const Answered answer = caller_.Get(request);
  const Response& response = answer.response;
  if (!response.answered()) throw RefusalOf(source.url, response);
  if (!response.ok()) throw source.refusal(response);
  RefusePageOf(source.url, response);
  const bool whole = response.body.size() == file.bytes &&
                     (file.sha256.empty() || Sha256Hex(response.body) == file.sha256);
  if (whole) return response.body;
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: the content is not that of the list of files ({} bytes, expected {})",
                  http_client::Shown(source.url), response.body.size(), file.bytes));
}

}  // namespace evald::fetch
