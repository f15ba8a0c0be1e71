#include "orchestrator/cli/watch_folder.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <map>

#include "base/print.h"
#include "http_server/target.h"
#include "orchestrator/cli/run_text.h"
#include "orchestrator/cli/terminal.h"
#include "orchestrator/report/text_table.h"

namespace evald::cli {
namespace {

constexpr int kEveryMax = 1'000'000;

// Prints the events of one watch and its runs.
class Teller {
 public:
  Teller(const Json& watch, const Common& common)
      : id_(watch.at("id").get<std::string>()), common_(common) {
    for (const Json& note : watch.at("recent")) Know(note);
  }

  /// False if the watch has ended.
  bool Visit(const Json& event) {
    const std::string type = TextOf(event, "type"), run = TextOf(event, "run");
    const Json& data = event.at("data");
    const bool own = data.is_object() && TextOf(data, "watch") == id_;
    const auto known = runs_.find(run);
    if (!own && known == runs_.end()) return true;
    if (common_.json) PrintJson(event);
    if (type == "watch.checkpoint") {
      Know(data);
      if (!common_.json) TellCheckpoint(data);
    } else if (type == "run.state" && IsOver(TextOf(data, "state"))) {
      if (!common_.json) TellEnd(known->second, data);
      runs_.erase(known);
    } else if (type == "watch.state" && TextOf(data, "state") == "removed") {
      if (!common_.json) Print("{}  removed\n", id_);
      return false;
    }
    return true;
  }

 private:
  void Know(const Json& note) {
    if (TextOf(note, "decision") == "submitted")
      runs_[TextOf(note, "run")] = TextOf(note, "checkpoint");
  }

  static void TellCheckpoint(const Json& note) {
    const std::string run = TextOf(note, "run"), detail = TextOf(note, "detail");
    Print("{}  {}{}{}\n", TextOf(note, "checkpoint"), TextOf(note, "decision"),
          run.empty() ? "" : " as " + run, detail.empty() ? "" : ": " + detail);
    std::fflush(stdout);
  }

  static void TellEnd(const std::string& checkpoint, const Json& data) {
    std::string line = fmt::format("{}  {}", checkpoint, TextOf(data, "state"));
    if (data.contains("scores") && !ScoreText(data).empty()) line += ": " + ScoreText(data);
    for (const Json& problem : data.value("problems", Json::array()))
      line += "\n  " + ForTerminal(problem.get<std::string>());
    PrintLines(line + "\n");
    std::fflush(stdout);
  }

  std::string id_;
  const Common& common_;
  std::map<std::string, std::string> runs_;  // run -> checkpoint
};

void PrintWrapped(const std::string& text) {
  for (const std::string& line : Wrapped(text, OutputColumns(), 4, true)) Print("{}\n", line);
}

std::string Policy(const Json& watch) {
  return watch.at("every").is_number() ? fmt::format("every-{}", watch.at("every").get<int64_t>())
                                       : TextOf(watch, "which");
}

}  // namespace

Json PolicyOf(const std::string& policy) {
  if (policy == "all" || policy == "newest") return {{"which", policy}};
  constexpr std::string_view kEvery = "every-";
  int every = 0;
  const char* const end = policy.data() + policy.size();
  const auto parsed = policy.starts_with(kEvery)
                          ? std::from_chars(policy.data() + kEvery.size(), end, every)
                          : std::from_chars_result{end, std::errc::invalid_argument};
  if (parsed.ec != std::errc() || parsed.ptr != end || every < 1 || every > kEveryMax) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("--policy: found '{}', expected all, newest or every-N, such as every-5",
                    policy));
  }
  return {{"which", "every"}, {"every", every}};
}

ExitStatus WatchFolder(Client* client, const FolderWatch& watch, bool detach,
                       const Common& common) {
  Json body = SubmissionBody(watch.submission);
  std::filesystem::path folder = std::filesystem::absolute(watch.checkpoints).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "checkpoints/"
  body["checkpoints"] = folder.string();
  body.update(PolicyOf(watch.policy));
  if (!watch.marker.empty()) body["marker"] = watch.marker;
  body["settle_s"] = watch.settle_s;
  const Json registered = client->Post("/v1/watches", body);
  const std::string id = registered.at("id").get<std::string>();
  if (common.json) PrintJson(registered);
  if (detach) {
    if (!common.json) Print("{}\n", id);
    return ExitStatus::kDone;
  }
  if (!common.quiet) {
    Print(stderr,
          "evald: {} evaluates each new checkpoint under {} ({}).\n"
          "evald: Ctrl-C ends this display; the watch goes on until 'evald watch --remove {}'.\n",
          client->server(), folder.string(), id, id);
  }
  Teller teller(registered, common);
  const CatchInterrupt catching;
  client->Follow(
      fmt::format("/v1/events?after={}", registered.at("sequence").get<int64_t>()),
      [&](const Json& event) { return teller.Visit(event); }, catching.caught());
  return ExitStatus::kDone;
}

ExitStatus ListWatches(Client* client, const Common& common) {
  const Json found = client->Get("/v1/watches");
  if (common.json) {
    PrintJson(found);
    return ExitStatus::kDone;
  }
  if (found.at("watches").empty())
    Print("No watches. 'evald watch --checkpoints DIR eval.yaml' adds one.\n");
  for (const Json& watch : found.at("watches")) {
    PrintWrapped(fmt::format(
        "{}  {}  {}{}", TextOf(watch, "id"), TextOf(watch, "checkpoints"), Policy(watch),
        watch.at("configured").get<bool>() ? "  (of the service's configuration)" : ""));
    for (const Json& note : watch.at("recent")) {
      PrintWrapped(fmt::format("  {}  {} {}{}", TextOf(note, "checkpoint"),
                               TextOf(note, "decision"), TextOf(note, "run"),
                               TextOf(note, "detail")));
    }
    if (!TextOf(watch, "problem").empty()) PrintWrapped("  " + TextOf(watch, "problem"));
  }
  return ExitStatus::kDone;
}

ExitStatus RemoveWatch(Client* client, const std::string& id, const Common& common) {
  const Json removed = client->Delete("/v1/watches/" + http::PercentEncode(id));
  if (common.json) {
    PrintJson(removed);
  } else {
    Print("{}  removed; runs that it submitted go on\n", id);
  }
  return ExitStatus::kDone;
}

}  // namespace evald::cli
