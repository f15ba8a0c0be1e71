#include "orchestrator/cli/client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "orchestrator/http/admission.h"

namespace evald::cli {
namespace {

constexpr const char* kDefaultServer = "http://127.0.0.1:8642";
constexpr size_t kReplyBytesMax = 1u << 30;
constexpr size_t kFrameBytesMax = 16u << 20;
constexpr long kConnectSeconds = 10;
constexpr long kSilenceSeconds = 60;  // an event stream says something every 15 s

// "http://127.0.0.1.evil.example" is not; nor is what has a user in front of the host.
bool IsLoopbackUrl(const std::string& url) {
  const size_t begin = url.find("://") + 3;
  const std::string host = url.substr(begin, url.find('/', begin) - begin);
  if (host.find('@') != std::string::npos) return false;
  const std::string name = http::HostName(host);
  const bool numbers = name.find_first_not_of("0123456789.") == std::string::npos;
  return name == "localhost" || name == "::1" || (name.starts_with("127.") && numbers);
}

size_t Append(char* data, size_t size, size_t count, void* text) {
  auto* all = static_cast<std::string*>(text);
  if (all->size() + size * count > kReplyBytesMax) return 0;
  all->append(data, size * count);
  return size * count;
}

// What one connection of an event stream feeds.
struct Following {
  CURL* curl;
  const EventVisitor* visit;
  const std::atomic<bool>* stop;
  EventParser parser;
  std::string refusal;  // the body of an answer that is no stream
  std::string last_id;
  bool over = false;  // the visitor has seen enough
  std::exception_ptr failure;
};

size_t TakeEvents(char* data, size_t size, size_t count, void* pointer) {
  auto* following = static_cast<Following*>(pointer);
  const std::string_view bytes(data, size * count);
  long status = 0;
  ::curl_easy_getinfo(following->curl, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) {
    following->refusal.append(bytes.substr(0, 65536));
    return bytes.size();
  }
  try {
    std::vector<EventParser::Message> messages;
    following->parser.Feed(bytes, &messages);
    for (const EventParser::Message& message : messages) {
      if (following->over) return 0;
      const Json event = ParseJson(message.data, "an event of the service");
      following->over = !(*following->visit)(event);
      if (!message.id.empty()) following->last_id = message.id;
    }
  } catch (...) {  // must not cross libcurl
    following->failure = std::current_exception();
    return 0;
  }
  return following->over ? 0 : bytes.size();
}

int StopAsked(void* pointer, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const auto* stop = static_cast<const std::atomic<bool>*>(pointer);
  return stop != nullptr && stop->load() ? 1 : 0;
}

using HeaderList = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

HeaderList MakeHeaders(const ClientOptions& options, const std::vector<std::string>& fields) {
  curl_slist* list = nullptr;
  for (const std::string& field : fields) list = ::curl_slist_append(list, field.c_str());
  if (!options.token.empty())
    list = ::curl_slist_append(list, ("Authorization: Bearer " + options.token).c_str());
  return {list, ::curl_slist_free_all};
}

void SetCommon(CURL* curl, const ClientOptions& options, const std::string& path,
               const HeaderList& headers) {
  ::curl_easy_reset(curl);
  ::curl_easy_setopt(curl, CURLOPT_URL, (options.server + path).c_str());
  ::curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  ::curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  ::curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  ::curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  ::curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
  ::curl_easy_setopt(curl, CURLOPT_USERAGENT, "evald");
  if (IsLoopbackUrl(options.server)) ::curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
  if (!options.ca_file.empty()) ::curl_easy_setopt(curl, CURLOPT_CAINFO, options.ca_file.c_str());
}

}  // namespace

void AddClientFlags(Command command, ClientFlags* flags) {
  command
      .AddOption("--server", &flags->server,
                 fmt::format("The service's URL; else EVALD_SERVER, else {}", kDefaultServer))
      .Metavar("URL");
  command
      .AddOption(
          "--token-file", &flags->token_file,
          "A file that holds a token; else EVALD_TOKEN_FILE, or EVALD_TOKEN, the token itself")
      .Metavar("FILE");
  command
      .AddOption("--ca-file", &flags->ca_file,
                 "Certificates to trust (PEM) instead of the system's; else EVALD_CA_FILE")
      .Metavar("FILE");
}

ClientOptions ReadClientFlags(const ClientFlags& flags) {
  const auto either = [](const std::string& flag, const char* variable) -> std::string {
    const char* value = flag.empty() ? std::getenv(variable) : nullptr;
    return value == nullptr ? flag : value;
  };
  ClientOptions options;
  options.server = either(flags.server, "EVALD_SERVER");
  if (options.server.empty()) options.server = kDefaultServer;
  while (options.server.ends_with('/')) options.server.pop_back();
  if (!options.server.starts_with("http://") && !options.server.starts_with("https://")) {
    throw Error(ErrorKind::kUsage,
                fmt::format("--server '{}': expected http://… or https://…", options.server));
  }
  const std::string token_file = either(flags.token_file, "EVALD_TOKEN_FILE");
  options.token = Trim(token_file.empty() ? either("", "EVALD_TOKEN") : ReadFile(token_file));
  if (!options.token.empty() && options.server.starts_with("http://") &&
      !IsLoopbackUrl(options.server)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the token would cross the network unencrypted to {}", options.server),
                "use https://…");
  }
  options.ca_file = either(flags.ca_file, "EVALD_CA_FILE");
  return options;
}

struct Client::Handle {
  std::unique_ptr<CURL, void (*)(CURL*)> curl{::curl_easy_init(), ::curl_easy_cleanup};
};

Client::Client(ClientOptions options) : options_(std::move(options)) {
  static const CURLcode started = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(started);
  handle_ = std::make_unique<Handle>();
  if (!handle_->curl) throw Error(ErrorKind::kInfrastructure, "libcurl cannot begin");
}

Client::~Client() = default;

Client::Reply Client::Do(const std::string& method, const std::string& path,
                         const std::string* body, const std::vector<std::string>& fields) {
  CURL* curl = handle_->curl.get();
  const HeaderList headers = MakeHeaders(options_, fields);
  SetCommon(curl, options_, path, headers);
  Reply reply;
  ::curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  if (body != nullptr) {
    ::curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body->data());
    ::curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(body->size()));
  }
  ::curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "gzip");
  ::curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, Append);
  ::curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply.body);
  const CURLcode result = ::curl_easy_perform(curl);
  if (result != CURLE_OK) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: {}", options_.server, ::curl_easy_strerror(result)),
                "is 'evald serve' running there? --server or EVALD_SERVER names another");
  }
  ::curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.status);
  return reply;
}

void Client::Refuse(const Reply& reply) const {
  std::string detail = fmt::format("status {}", reply.status), remedy;
  try {
    const Json problem = ParseJson(reply.body, "the answer");
    detail = FieldOr<std::string>(problem, "detail", detail, "the answer");
    remedy = FieldOr<std::string>(problem, "remedy", "", "the answer");
  } catch (const Error&) {
  }
  if (reply.status == 401)
    remedy = "set EVALD_TOKEN or --token-file";  // rather than the header that it names
  const bool usage =
      reply.status >= 400 && reply.status < 500 && reply.status != 408 && reply.status != 429;
  throw Error(usage ? ErrorKind::kUsage : ErrorKind::kInfrastructure,
              fmt::format("{}: {}", options_.server, detail), remedy);
}

Json Client::Get(const std::string& path) {
  return ParseJson(GetText(path), options_.server + path);
}

std::string Client::GetText(const std::string& path) {
  Reply reply = Do("GET", path, nullptr, {});
  if (reply.status != 200) Refuse(reply);
  return std::move(reply.body);
}

Json Client::Post(const std::string& path, const Json& body,
                  const std::vector<std::string>& headers) {
  std::vector<std::string> fields = headers;
  const std::string text = body.is_null() ? "" : ToLine(body);
  if (!body.is_null()) fields.push_back("Content-Type: application/json");
  fields.push_back("Expect:");
  const Reply reply = Do("POST", path, &text, fields);
  if (reply.status < 200 || reply.status >= 300) Refuse(reply);
  return ParseJson(reply.body, options_.server + path);
}

Json Client::Delete(const std::string& path) {
  const Reply reply = Do("DELETE", path, nullptr, {});
  if (reply.status != 200) Refuse(reply);
  return ParseJson(reply.body, options_.server + path);
}

void Client::Follow(const std::string& path, const EventVisitor& visit,
                    const std::atomic<bool>* stop, double patience_s) {
  CURL* curl = handle_->curl.get();
  Following following{curl, &visit, stop, {}, "", "", false, nullptr};
  int64_t heard_us = MonotonicMicros();
  while (stop == nullptr || !stop->load()) {
    std::vector<std::string> fields = {"Accept: text/event-stream"};
    if (!following.last_id.empty()) fields.push_back("Last-Event-ID: " + following.last_id);
    const HeaderList headers = MakeHeaders(options_, fields);
    SetCommon(curl, options_, path, headers);
    following.parser = EventParser();
    following.refusal.clear();
    ::curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, TakeEvents);
    ::curl_easy_setopt(curl, CURLOPT_WRITEDATA, &following);
    ::curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    ::curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
    ::curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    ::curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, StopAsked);
    ::curl_easy_setopt(curl, CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(stop));
    const CURLcode result = ::curl_easy_perform(curl);
    if (following.failure) std::rethrow_exception(following.failure);
    if (following.over) return;
    long status = 0;
    ::curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 400 && status < 500 && status != 408 && status != 429)
      Refuse({status, following.refusal});
    if (status == 200) heard_us = MonotonicMicros();
    const double away_s = static_cast<double>(MonotonicMicros() - heard_us) * 1e-6;
    if (away_s > patience_s) {
      throw Error(ErrorKind::kInfrastructure,
                  fmt::format("{}: away for {}: {}", options_.server, HumanSeconds(away_s),
                              ::curl_easy_strerror(result)),
                  "the run goes on with the service; watch it again later");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
}

void EventParser::Line(std::string_view line, std::vector<Message>* messages) {
  if (line.empty()) {
    if (has_data_) messages->push_back(std::move(next_));
    next_ = {};
    has_data_ = false;
    return;
  }
  const size_t colon = std::min(line.find(':'), line.size());
  const std::string_view name = line.substr(0, colon);
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  if (value.starts_with(' ')) value.remove_prefix(1);
  if (name == "id") next_.id = value;
  if (name == "data") {
    if (has_data_) next_.data += '\n';
    next_.data += value;
    has_data_ = true;
  }
}

void EventParser::Feed(std::string_view bytes, std::vector<Message>* messages) {
  input_.append(bytes);
  size_t begin = 0;
  for (size_t end; (end = input_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line = std::string_view(input_).substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    Line(line, messages);
  }
  input_.erase(0, begin);
  if (input_.size() + next_.data.size() > kFrameBytesMax) {
    throw Error(ErrorKind::kInput, "an event of the service is too long");
  }
}

}  // namespace evald::cli
