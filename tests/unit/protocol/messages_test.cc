#include "protocol/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/jsonl.h"
#include "evald/engine_info.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald::protocol {
namespace {

using testing::HasSubstr;

Json Engine() {
  EngineInfo info;
  info.name = "native";
  info.kinds = {RequestKind::kGenerateUntil};
  return ToJson(info);
}

std::vector<Message> OneOfEach() {
  Slice slice{
      "gsm8k", "/cache/prepared/ab", "k1", 3, 9, "/run/g/1.0.jsonl", {"/run/g/1.0.jsonl.part"}};
  return {
      Hello{kVersion, "worker", "w0", 4711, Engine(), "cuda:GPU-a is held"},
      Loaded{"f00d", Engine(), Json{{"bytes", 12}}},
      Want{2},
      Progress{7, 1, 100, 2000, 3000, 4, "gsm8k", 1.5, 5, 6},
      SliceDone{7, 1, "gsm8k", 3, 9, "/run/g/7.1.jsonl", "aa", 4096, 6, 1, 600, 700, 3.5, 1.25, 2},
      TrialDone{7, 1, 12.25},
      TrialFailed{7, 1, false, "disk \"full\"", true},
      JobDone{9, "/run/s/9.jsonl", "bb", 77, 0.5, 0.75, 2, 12, {{4, 6, "no verdict"}}, "down"},
      JobFailed{9, true, "killed", 2},
      Span{"generate", 1000, 2000, Json{{"trials", {7}}}},
      Load{"/dev/shm/evald-0/f00d", "f00d"},
      Lease{7, 1, {slice, slice}, "f00d", "run-1"},
      Job{9, "gsm8k", "/cache/prepared/ab", 3, 9, "/run/g/7.1.jsonl", "aa", "/run/s/9.jsonl",
          "run-1", 2, Json{{"model", "m"}}},
      Revoke{7, 1},
      Drain{},
      Stop{},
      Revoked{7, 1},
      Shorten{7, 1, "gsm8k", 3, 6},
      Shortened{7, 1, "gsm8k", 3, 7},
      Follow{"/dev/shm/evald-0/.staging-f00d"},
  };
}

std::string ErrorOf(const std::string& line) {
  return RefusalOf([&] { Decode(line); });
}

TEST(Messages, EachComesBackAsItWas) {
  const std::vector<Message> messages = OneOfEach();
  ASSERT_EQ(messages.size(), std::variant_size_v<Message>);
  for (size_t i = 0; i < messages.size(); ++i) {
    ASSERT_EQ(messages[i].index(), i);
    const std::string line = Encode(messages[i]);
    EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
    const Message decoded = Decode(line);
    EXPECT_EQ(decoded.index(), i) << line;
    EXPECT_EQ(Encode(decoded), line);
  }
}

// A cause quotes other people's files. The connection would end at a line that is too long.
TEST(Messages, ACauseOfAnyLengthFitsIntoALine) {
  std::string cause;
  while (cause.size() < kLineBytesMax) cause += "\x01é";
  for (const Message& message :
       {Message(TrialFailed{-1, 0, false, cause}), Message(JobFailed{9, true, cause, 2})}) {
    const std::string line = Encode(message);
    EXPECT_LT(line.size(), kLineBytesMax / 8);
    EXPECT_NE(line.find("…"), std::string::npos);
    EXPECT_TRUE(Encode(Decode(line)) == line);
  }
}

TEST(Messages, ValuesArriveInTheirMembers) {
  const auto lease = std::get<Lease>(Decode(Encode(OneOfEach()[11])));
  EXPECT_EQ(lease.trial, 7);
  EXPECT_EQ(lease.attempt, 1);
  ASSERT_EQ(lease.slices.size(), 2u);
  EXPECT_EQ(lease.slices[1].first, 3);
  EXPECT_EQ(lease.slices[1].end, 9);
  EXPECT_EQ(lease.slices[1].salvage, std::vector<std::string>{"/run/g/1.0.jsonl.part"});
}

// Members that earlier versions do not send.
const std::set<std::pair<std::string, std::string>> kLaterMembers = {
    {"hello", "waits"},          {"job", "judge"},         {"job_done", "end"},
    {"job_done", "stopped"},     {"job_done", "unscored"}, {"progress", "pulled"},
    {"progress", "to_pull"},     {"progress", "salvaged"}, {"trial_failed", "device"},
    {"trial_failed", "lasting"}, {"trial_failed", "task"}};

// After the decoder, no code meets a number that no device can report, or a raw value of another
// form.
TEST(Messages, WhatIsOutOfBoundsIsNamed) {
  const auto with = [](size_t index, const char* pointer, const Json& value) {
    Json message = ParseJson(Encode(OneOfEach()[index]), "test");
    message[Json::json_pointer(pointer)] = value;
    return ErrorOf(ToLine(message));
  };
  const std::vector<std::tuple<size_t, const char*, Json>> wrong = {
      {0, "/engine", 1},
      {0, "/engine", Json::array()},
      {0, "/engine/name", 1},
      {0, "/engine/follows", 1},
      {0, "/pid", -1},
      {1, "/engine", Json::array()},
      {1, "/engine/kinds", 1},
      {1, "/engine/device", 1},
      {1, "/engine/device_id", 1},
      {1, "/engine/max_length", -7},
      {1, "/engine", nullptr},
      {1, "/report", 1},
      {1, "/report/bytes", "12"},
      {1, "/report/gb_per_s", "1"},
      {1, "/report/scoring", 1},
      {1, "/report/scoring", Json{{"offered", 1}}},
      {1, "/report/scoring", Json{{"reason", 1}}},
      {1, "/report/more", std::string(100'000, 'x')},
      {2, "/count", -1},
      {2, "/count", 1'000'000'000},
      {3, "/oldest_seconds", 1e308},
      {3, "/oldest_seconds", -1},
      {3, "/requests_done", -5},
      {3, "/salvaged", -5},
      {3, "/pulled", INT64_MIN},
      {4, "/device_seconds", -1e300},
      {4, "/device_seconds", 1e308},
      {4, "/longest_seconds", 1e308},
      {4, "/first", -1},
      {4, "/end", 3},
      {4, "/bytes", UINT64_MAX},
      {4, "/tokens_in", INT64_MIN},
      {4, "/tokens_out", INT64_MAX},
      {4, "/requests", -5},
      {4, "/file", std::string(100'000, 'x')},
      {4, "/attempt", -1},
      {4, "/trial", -2},
      {5, "/device_seconds", -1e308},
      {7, "/slot_seconds", 1e308},
      {7, "/cpu_seconds", -1},
      {7, "/job", -1},
      {7, "/end", -1},
      {7, "/unscored/0/first", -1},
      {7, "/unscored/0/end", 4},
      {7, "/unscored/0/cause", 5},
      {7, "/unscored", std::vector<Json>(300, Json{{"first", 1}, {"end", 2}, {"cause", ""}})},
      {12, "/judge", "http://h"},
      {8, "/attempt", -1},
      {9, "/begin", INT64_MIN},
      {9, "/end", INT64_MAX},
      {9, "/args", 1},
      {9, "/args/job", "1"},
      {9, "/args/trials", 1},
      {9, "/args/trials", {"a"}},
      {9, "/args/more", std::string(1'000'000, 'x')},
      {18, "/end", 3}};
  for (const auto& [index, pointer, value] : wrong) {
    EXPECT_NE(with(index, pointer, value), "")
        << index << " " << pointer << " " << ToLine(value).substr(0, 40);
  }
}

TEST(Messages, ANullMemberOfAnOpenOneIsAbsentAndALongTextIsCut) {
  Json loaded = ParseJson(Encode(OneOfEach()[1]), "test");
  loaded["engine"]["device"] = nullptr;
  loaded["report"] = {{"bytes", nullptr}, {"scoring", {{"offered", nullptr}}}};
  const auto got = std::get<Loaded>(Decode(ToLine(loaded)));
  EXPECT_EQ(got.engine.value("device", "none"), "");
  EXPECT_EQ(got.report.value("bytes", 5), 5);
  EXPECT_TRUE(got.report["scoring"].value("offered", true));
  Json failed = ParseJson(Encode(OneOfEach()[6]), "test");
  failed["message"] = std::string(1'000'000, 'x');
  EXPECT_LT(std::get<TrialFailed>(Decode(ToLine(failed))).message.size(), 5000u);
}

TEST(Messages, ATreeThatIsLargeInMemoryIsNotBuilt) {
  std::string values = "[";
  for (int i = 0; i < 300'000; ++i) values += "0,";
  EXPECT_THAT(ErrorOf("{\"type\":\"drain\",\"more\":" + values + "0]}"), HasSubstr("values"));
}

// Every member of every message is removed, and then given a wrong type. The error names the member
// and its message.
TEST(Messages, AnAbsentOrWrongMemberIsNamed) {
  for (const Message& message : OneOfEach()) {
    const Json whole = ParseJson(Encode(message), "test");
    for (const auto& [key, value] : whole.items()) {
      if (key == "type") continue;
      const std::string type = whole["type"];
      Json changed = whole;
      changed.erase(key);
      if (kLaterMembers.count({type, key}) > 0) {
        EXPECT_EQ(ErrorOf(ToLine(changed)), "") << type << " of an earlier version";
      } else {
        EXPECT_THAT(ErrorOf(ToLine(changed)),
                    HasSubstr("message '" + type + "': the key '" + key + "'"));
      }
      if (value.is_object()) continue;  // members that may hold any JSON
      changed[key] = Json::object();
      EXPECT_THAT(ErrorOf(ToLine(changed)), HasSubstr("message '" + type + "': key '" + key + "'"));
    }
  }
}

TEST(Messages, AWrongSliceIsNamedWithItsPlace) {
  Json lease = ParseJson(Encode(OneOfEach()[11]), "test");
  lease["slices"][1]["first"] = "three";
  EXPECT_THAT(ErrorOf(ToLine(lease)), HasSubstr("message 'lease': slices[1]: key 'first'"));
  lease["slices"][1] = 5;
  EXPECT_THAT(ErrorOf(ToLine(lease)), HasSubstr("slices[1]"));
}

TEST(Messages, WhatIsNotAMessageIsRefused) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("message"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("'type' is absent"));
  EXPECT_THAT(ErrorOf(R"({"type":5})"), HasSubstr("'type'"));
  EXPECT_THAT(ErrorOf(R"({"type":"hallo"})"), HasSubstr("unknown message type 'hallo'"));
  EXPECT_THAT(ErrorOf(R"({"type":"want","count":1e999})"), HasSubstr("message"));
  EXPECT_THAT(ErrorOf(R"({"type":"want","count":9223372036854775808})"), HasSubstr("'count'"));
  EXPECT_THAT(ErrorOf(std::string(5000, '[')), HasSubstr("nested deeper"));
}

TEST(Messages, UnknownMembersArePassedOver) {
  EXPECT_EQ(std::get<Want>(Decode(R"({"type":"want","count":3,"later":true})")).count, 3);
}

TEST(LineSplitter, GivesLinesHoweverTheyArrive) {
  const std::string stream = "one\ntwo\n\nthree and more\n";
  for (size_t piece = 1; piece <= stream.size(); ++piece) {
    LineSplitter splitter;
    std::vector<std::string> lines;
    std::string line;
    for (size_t at = 0; at < stream.size(); at += piece) {
      splitter.Feed(std::string_view(stream).substr(at, piece));
      while (splitter.Next(&line)) lines.push_back(line);
    }
    EXPECT_EQ(lines, (std::vector<std::string>{"one", "two", "", "three and more"}));
  }
}

TEST(LineSplitter, ALineWithoutEndIsRefusedAndForgotten) {
  LineSplitter splitter;
  std::string line;
  const std::string chunk(1024 * 1024, 'x');
  for (int i = 0; i < 4; ++i) {
    splitter.Feed(chunk);
    EXPECT_FALSE(splitter.Next(&line));
  }
  splitter.Feed(chunk);
  EXPECT_THROW(splitter.Next(&line), Error);
  splitter.Feed("tail\nnext\n");
  ASSERT_TRUE(splitter.Next(&line));
  EXPECT_EQ(line, "tail");
  ASSERT_TRUE(splitter.Next(&line));
  EXPECT_EQ(line, "next");
}

}  // namespace
}  // namespace evald::protocol
