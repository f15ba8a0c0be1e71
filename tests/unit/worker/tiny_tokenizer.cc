#include "tiny_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>

#include "base/file.h"
#include "base/jsonl.h"

namespace evald::test {
namespace {

// The printable character for a byte in byte-level tokenizers (GPT-2's table), as UTF-8.
std::string StandIn(int byte) {
  int code = byte;
  const auto printable = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  };
  if (!printable(byte)) {
    code = 256;
    for (int other = 0; other < byte; ++other) code += printable(other) ? 0 : 1;
  }
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))};
}

constexpr const char* kLetters = "abcdefghij klmnopqrstuvwxyz";

double Score(const std::vector<int>& context, size_t length, int token) {
  uint64_t state = 1469598103934665603ull;
  for (size_t i = length > 3 ? length - 3 : 0; i < length; ++i) {
    state = (state ^ static_cast<uint64_t>(context[i])) * 1099511628211ull;
  }
  state = (state ^ static_cast<uint64_t>(token + 1000)) * 1099511628211ull;
  state ^= state >> 29;
  return 6 * static_cast<double>(state % 10007) / 10007;
}

std::vector<std::pair<double, int>> Distribution(const std::vector<int>& context, size_t length) {
  std::vector<std::pair<double, int>> scores;
  double sum = 0;
  for (const char* letter = kLetters; *letter != 0; ++letter) {
    scores.emplace_back(Score(context, length, *letter), *letter);
    sum += std::exp(scores.back().first);
  }
  for (auto& [score, token] : scores) score -= std::log(sum);
  std::sort(scores.rbegin(), scores.rend());
  return scores;
}

double LogprobAt(const std::vector<int>& tokens, size_t at, int token) {
  for (const auto& [logprob, letter] : Distribution(tokens, at)) {
    if (letter == token) return logprob;
  }
  return -12.0 - token % 7;  // tokens that the model never generates
}

std::vector<int> PromptOf(const Json& body) {
  if (body["prompt"].is_array()) return body["prompt"].get<std::vector<int>>();
  std::vector<int> tokens;
  for (const char c : body["prompt"].get<std::string>())
    tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

double FaultyLogprob(const std::vector<int>& tokens, size_t at, Fault fault) {
  switch (fault) {
    case Fault::kConstant:
      return -2.5;
    case Fault::kShifted:
      return LogprobAt(tokens, at - 1, tokens[at - 1]);
    case Fault::kChance:
      return -std::log(27) - 0.01 * static_cast<double>(at % 5);
    case Fault::kContextFree:
      return LogprobAt({}, 0, tokens[at]);
    default:
      return LogprobAt(tokens, at, tokens[at]);
  }
}

Json Logprobs(const std::vector<int>& tokens, size_t prompt, bool echo, int top, Fault fault) {
  Json values = Json::array(), tops = Json::array();
  for (size_t at = echo ? 0 : prompt; at < tokens.size(); ++at) {
    if (at == 0) {
      values.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    const double value =
        at < prompt ? FaultyLogprob(tokens, at, fault) : LogprobAt(tokens, at, tokens[at]);
    values.push_back(value);
    Json likeliest = Json::object();
    if (fault != Fault::kGreedyAlways || at >= prompt) {
      const auto all = Distribution(tokens, at);
      for (int i = 0; i < top; ++i) {
        likeliest[std::string(1, static_cast<char>(all[static_cast<size_t>(i)].second))] =
            all[static_cast<size_t>(i)].first;
      }
    }
    likeliest[std::string(1, static_cast<char>(tokens[at]))] = value;
    tops.push_back(likeliest);
  }
  if (fault == Fault::kShort && values.size() > 2) values.erase(values.size() - 2);
  if (fault == Fault::kShort && values.size() > 2) values.erase(values.size() - 2);
  return {{"token_logprobs", values}, {"top_logprobs", tops}};
}

}  // namespace

double ToyLogprob(const std::vector<int>& context, int token) {
  return LogprobAt(context, context.size(), token);
}

Json ToyCompletion(const Json& body, Fault fault) {
  std::vector<int> tokens = PromptOf(body);
  const size_t prompt = tokens.size();
  const int count = body.value("max_tokens", 16);
  for (int i = 0; i < count; ++i) tokens.push_back(Distribution(tokens, tokens.size())[0].second);
  const bool echo = body.value("echo", false);
  std::string text;
  for (size_t i = echo ? 0 : prompt; i < tokens.size(); ++i) text += static_cast<char>(tokens[i]);
  Json choice{{"index", 0}, {"text", text}, {"finish_reason", "length"}, {"logprobs", nullptr}};
  if (body.contains("logprobs") && fault != Fault::kNoLogprobs) {
    choice["logprobs"] = Logprobs(tokens, prompt, echo, body["logprobs"], fault);
  }
  return {{"object", "text_completion"},
          {"choices", Json::array({choice})},
          {"usage", {{"prompt_tokens", prompt}, {"completion_tokens", count}}}};
}

void WriteTinyCheckpoint(const std::filesystem::path& folder, int max_length) {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[StandIn(byte)] = byte;
  const Json byte_level{{"type", "ByteLevel"},
                        {"add_prefix_space", false},
                        {"trim_offsets", true},
                        {"use_regex", true}};
  Json tokenizer{{"version", "1.0"},          {"truncation", nullptr},
                 {"padding", nullptr},        {"added_tokens", Json::array()},
                 {"normalizer", nullptr},     {"pre_tokenizer", byte_level},
                 {"post_processor", nullptr}, {"decoder", byte_level}};
  tokenizer["model"] = {{"type", "BPE"},
                        {"dropout", nullptr},
                        {"unk_token", nullptr},
                        {"continuing_subword_prefix", nullptr},
                        {"end_of_word_suffix", nullptr},
                        {"fuse_unk", false},
                        {"byte_fallback", false},
                        {"ignore_merges", false},
                        {"vocab", vocabulary},
                        {"merges", Json::array()}};
  WriteFileAtomic(folder / "tokenizer.json", ToLine(tokenizer));
  WriteFileAtomic(folder / "config.json", ToLine(Json{{"max_position_embeddings", max_length}}));
}

}  // namespace evald::test
