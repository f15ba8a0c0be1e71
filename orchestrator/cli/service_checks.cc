#include "orchestrator/cli/service_checks.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/jsonl.h"
#include "base/text.h"
#include "base/version.h"

namespace evald::cli {
namespace {

constexpr const char* kLocal = "local";

Check CheckAgent(const Json& host) {
  const std::string name = host.at("id").get<std::string>(),
                    state = host.at("state").get<std::string>();
  Check check{"agent " + name, state == "connected" || state == "left", ""};
  const std::string version = host.value("version", "");
  if (state == "left") {
    check.detail = fmt::format("left in order (evald {})", version);
    return check;
  }
  const Json& space = host.at("shared_memory");
  check.detail = fmt::format("{}, evald {}, {} device{}, {} of {} free for staging", state, version,
                             host.at("devices").size(), host.at("devices").size() == 1 ? "" : "s",
                             HumanBytes(space.at("free").get<uint64_t>()),
                             HumanBytes(space.at("total").get<uint64_t>()));
  if (!check.fine) {
    check.detail = name == kLocal ? "away; see agent.log in the service's state_dir"
                                  : fmt::format(
                                        "away (evald {}): it was killed, or cannot reach the "
                                        "service; what it prints there says which",
                                        version);
  }
  return check;
}

// Reports devices that failed again and again.
void AddSetAside(const Json& host, std::vector<Check>* checks) {
  for (const Json& device : host.at("devices")) {
    const Json aside = device.value("set_aside", Json());
    if (!aside.is_string()) continue;
    checks->push_back(
        {fmt::format("device {}", device.at("id").get<std::string>()), false,
         fmt::format("set aside on {}: {}; see its worker's log, then start the agent anew",
                     host.at("id").get<std::string>(), aside.get<std::string>())});
  }
}

Check CheckRefused(const Json& refusal) {
  const std::string name = refusal.at("name").get<std::string>();
  return {fmt::format("agent {}", name.empty() ? "(no name)" : name), false,
          fmt::format("may not join, since {}: {}", refusal.at("at").get<std::string>(),
                      refusal.at("reason").get<std::string>())};
}

bool IsNamed(const ClientFlags& flags) {
  const char* variable = std::getenv("EVALD_SERVER");
  return !flags.server.empty() || (variable != nullptr && variable[0] != '\0');
}

void AddTurnedAway(Client* client, std::vector<Check>* checks) {
  const std::string metrics = client->GetText("/metrics");
  const std::pair<int, const char*> reasons[] = {{401, "without a token that the service knows"},
                                                 {403, "with a token whose role is not 'worker'"}};
  for (const auto& [status, reason] : reasons) {
    const double count = AgentsTurnedAway(metrics, status);
    if (count == 0) continue;
    checks->push_back(
        {"agents' tokens", false,
         fmt::format(
             "{} connection{} {} since the service was started; see --token-file of 'evald agent'",
             count, count == 1 ? "" : "s", reason)});
  }
}

}  // namespace

double AgentsTurnedAway(const std::string& metrics, int status) {
  const std::string code = fmt::format("code=\"{}\"", status);
  double count = 0;
  for (const std::string& line : Split(metrics, '\n')) {
    const size_t value = line.rfind(' ');
    if (!line.starts_with("evald_http_requests_total{") || value == std::string::npos) continue;
    if (line.find("route=\"/v1/agents/connect\"") == std::string::npos ||
        line.find(code) == std::string::npos)
      continue;
    count += std::strtod(line.c_str() + value, nullptr);
  }
  return count;
}

std::vector<Check> CheckService(const ClientFlags& flags) {
  std::vector<Check> checks;
  std::string server = flags.server;
  bool answered = false;
  try {
    Client client(ReadClientFlags(flags));
    server = client.server();
    const Json health = client.Get("/healthz");
    answered = true;
    const Json fleet = client.Get("/v1/hosts");
    const std::string version = health.value("version", "");
    checks.push_back(
        {"service", version == kEvaldVersion,
         fmt::format(
             "{} is evald {}{}", server, version,
             version == kEvaldVersion ? "" : fmt::format(", and this is {}", kEvaldVersion))});
    for (const Json& host : fleet.at("hosts")) {
      checks.push_back(CheckAgent(host));
      AddSetAside(host, &checks);
    }
    for (const Json& refusal : fleet.at("refused")) checks.push_back(CheckRefused(refusal));
    AddTurnedAway(&client, &checks);
  } catch (const Error& e) {
    const bool absent = !answered && e.kind() == ErrorKind::kInfrastructure && !IsNamed(flags);
    checks.push_back(
        {"service", absent,
         absent ? fmt::format("none at {}; --server asks another", server) : e.what()});
  } catch (const Json::exception& e) {
    checks.push_back(
        {"service", false,
         fmt::format("{} answers as no evald of this version does: {}", server, e.what())});
  }
  return checks;
}

}  // namespace evald::cli
