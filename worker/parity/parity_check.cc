#include "worker/parity/parity_check.h"

#include <fmt/format.h>

#include "evald/error.h"
#include "worker/parity/continuations.h"

namespace evald::parity {
namespace {

constexpr size_t kQuickParts = 3;
constexpr int kQuickShare = 10;  // an exchange of weights takes a tenth of a start, or less

constexpr const char* kTextCauses =
    "see whether the server has the weights of this checkpoint and its tokenizer, adds the same "
    "special tokens to a prompt, and draws no tokens at temperature 0";

const char* ToString(Report::Outcome outcome) {
  switch (outcome) {
    case Report::Outcome::kAgrees:
      return "agrees";
    case Report::Outcome::kDiffers:
      return "differs";
    case Report::Outcome::kSkipped:
      break;
  }
  return "skipped";
}

Report Skipped(std::string reason) {
  Report report;
  report.reason = std::move(reason);
  return report;
}

}  // namespace

Json Report::ToJson() const {
  Json json = {{"outcome", ToString(outcome)}};
  if (!reason.empty()) json["reason"] = reason;
  if (distance.scores > 0) {
    json["scores"] = distance.scores;
    json["mean"] = distance.mean;
    json["largest"] = distance.largest;
    json["rounding"] = distance.expected;
  }
  if (texts > 0) json["texts"] = texts;
  if (seconds > 0) json["seconds"] = seconds;
  if (!left_out.empty()) json["left_out"] = left_out;
  return json;
}

std::string Report::Summary() const {
  return reason.empty() ? ToString(outcome) : fmt::format("{}: {}", ToString(outcome), reason);
}

void ParityCheck::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  stop_ = false;
}

void ParityCheck::Begin(const std::filesystem::path& directory, NumberType type, bool quick) {
  Stop();
  reference_ = {};
  why_none_ = "switched off by `parity_seconds: 0`";
  if (budget_.count() <= 0) return;
  why_none_.clear();
  task_ = {directory, type, threads_, quick ? budget_ / kQuickShare : budget_,
           quick ? kQuickParts : SIZE_MAX};
  thread_ = std::thread([this] {
    try {
      reference_ = ComputeReference(task_, &stop_);
    } catch (const std::exception& e) {
      why_none_ = fmt::format("evald's own engine does not serve this checkpoint: {}", e.what());
    }
  });
}

// Waits for the thread.
bool ParityCheck::HasReference() {
  if (thread_.joinable()) thread_.join();
  return why_none_.empty();
}

Report ParityCheck::Check(const AskScores& ask) {
  if (!HasReference()) return Skipped(why_none_);
  std::vector<std::vector<std::optional<double>>> found;
  for (size_t i = 0; i < reference_.expected.size(); ++i)
    found.push_back(ask(reference_.parts[i].windows));
  const Verdict verdict = Judge(reference_, found);
  if (verdict.all.scores == 0) return Skipped("there is no score that both engines give");
  Report report;
  report.outcome =
      verdict.difference.empty() ? Report::Outcome::kAgrees : Report::Outcome::kDiffers;
  report.reason = verdict.difference;
  report.causes = verdict.causes;
  report.distance = verdict.all;
  report.seconds = reference_.seconds;
  report.left_out = reference_.left_out;
  return report;
}

Report ParityCheck::CheckTexts(const AskText& ask) {
  if (!HasReference()) return Skipped(why_none_);
  const auto engine = ReferenceEngine(task_);
  const std::vector<Continuation> expected =
      ContinuationsOf(engine.get(), *Tokenizer::Load(task_.directory));
  std::vector<std::string> found;
  for (const Continuation& one : expected) found.push_back(ask(one.prompt, kContinuationTokens));
  Report report;
  report.seconds = reference_.seconds;
  report.texts = static_cast<int>(expected.size());
  report.reason = Different(expected, found);
  if (!report.reason.empty()) {
    report.outcome = Report::Outcome::kDiffers;
    report.causes = kTextCauses;
    return report;
  }
  if (report.texts == 0) return Skipped("there is no text to compare");
  report.outcome = Report::Outcome::kAgrees;
  return report;
}

}  // namespace evald::parity
