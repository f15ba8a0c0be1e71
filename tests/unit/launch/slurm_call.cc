// evald-slurm-call: one call of SlurmLauncher, for tests that have a real Slurm. Reads a JSON
// object from standard input and writes the answer to standard output: {"error": "..."} for an
// Error.

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "evald/error.h"
#include "orchestrator/launch/slurm.h"

namespace {

using evald::ListedJob;
using evald::NodeJob;
using evald::SlurmLauncher;
using evald::SlurmSettings;
using evald::SubmitAnswer;
using nlohmann::json;

SlurmSettings SettingsOf(const json& document) {
  SlurmSettings settings;
  settings.prefix = document.value("prefix", "");
  settings.partition = document.value("partition", "");
  settings.gpus_per_node = document.value("gpus_per_node", 0);
  settings.cpus_per_node = document.value("cpus_per_node", 0);
  settings.time_s = document.value("time_s", 0.0);
  settings.warning_s = document.value("warning_s", settings.warning_s);
  settings.more = document.value("more", std::vector<std::string>());
  settings.evald = document.value("evald", "");
  settings.logs = document.value("logs", "");
  return settings;
}

json AnswerOf(const SubmitAnswer& answer) {
  const char* const outcomes[] = {"accepted", "refused", "unknown"};
  return {{"outcome", outcomes[static_cast<int>(answer.outcome)]},
          {"job", answer.job},
          {"why", answer.why}};
}

json AnswerOf(const ListedJob& job) {
  const char* const states[] = {"pending", "running", "over"};
  return {{"job", job.job},
          {"name", job.name},
          {"state", states[static_cast<int>(job.state)]},
          {"word", job.word},
          {"reason", job.reason},
          {"node", job.node},
          {"starts_at", job.starts_at},
          {"ends_at", job.ends_at}};
}

json Call(const json& order) {
  SlurmLauncher launcher(SettingsOf(order.at("settings")));
  NodeJob job;
  job.name = order.value("name", "");
  job.job = order.value("job", "");
  const std::string call = order.at("call");
  if (call == "submit") {
    return AnswerOf(launcher.Submit(job, order.value("join", ""),
                                    order.value("excluded", std::vector<std::string>())));
  }
  if (call == "stop") {
    launcher.Stop(job);
    return json::object();
  }
  if (call == "exclude") {
    launcher.Exclude(job, order.value("excluded", std::vector<std::string>()));
    return json::object();
  }
  if (call == "log") return {{"log", launcher.LogEnd(job)}};
  json jobs = json::array();
  for (const ListedJob& listed : launcher.List()) jobs.push_back(AnswerOf(listed));
  return {{"jobs", jobs}};
}

}  // namespace

int main() {
  json answer;
  try {
    answer = Call(json::parse(std::cin));
  } catch (const evald::Error& error) {
    answer = {{"error", error.what()}};
  }
  std::cout << answer.dump() << "\n";
  return 0;
}
