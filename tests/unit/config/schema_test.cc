// docs/eval.schema.json, which editors use, and the parser know the same keys. The test asks the
// parser: its error for an unknown key lists the keys of the mapping.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "engines/engines.h"
#include "evald/error.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/config/key_hints.h"

namespace evald {
namespace {

using Keys = std::set<std::string>;

Json Schema() {
  const std::string path = EVALD_SOURCE_DIR "/docs/eval.schema.json";
  return ParseJson(ReadFile(path), path);
}

Keys KeysOf(const Json& object) {
  Keys keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

/// The keys that the parser accepts in the mapping of `text` that has the key QQQQQQQQ.
Keys Taken(const std::string& text) {
  try {
    ParseEvalConfig(text, "/somewhere/eval.yaml", {});
  } catch (const Error& e) {
    const std::string mark = "valid keys here: ";
    const std::string message = e.message();
    const size_t at = message.find(mark);
    EXPECT_NE(at, std::string::npos) << message;
    Keys keys;
    for (const std::string& key : Split(message.substr(at + mark.size()), ',')) {
      keys.insert(std::string(Trim(key)));
    }
    return keys;
  }
  ADD_FAILURE() << "must be refused: " << text;
  return {};
}

constexpr const char* kTop = "tasks: [gsm8k]\nengine: {name: emulated}\n";

TEST(Schema, TheTopIsTheParsers) {
  EXPECT_EQ(KeysOf(Schema()["properties"]), Taken(std::string(kTop) + "QQQQQQQQ: 1\n"));
}

TEST(Schema, EverySectionIsTheParsers) {
  const Json schema = Schema();
  for (const char* section : {"workers", "metrics", "staging", "limits", "output"}) {
    EXPECT_EQ(KeysOf(schema["properties"][section]["properties"]),
              Taken(std::string(kTop) + section + ": {QQQQQQQQ: 1}\n"))
        << section;
    EXPECT_EQ(schema["properties"][section]["additionalProperties"], false) << section;
  }
  for (const char* kind : {"slurm", "command"}) {
    const Json& launcher = schema["properties"]["launcher"]["properties"][kind];
    const std::string needed = kind == std::string("slurm") ? "" : "start: a, stop: b, list: c, ";
    EXPECT_EQ(KeysOf(launcher["properties"]),
              Taken(std::string(kTop) + "launcher: {" + kind + ": {" + needed + "QQQQQQQQ: 1}}\n"))
        << kind;
    EXPECT_EQ(launcher["additionalProperties"], false) << kind;
  }
  const Json& task = schema["properties"]["tasks"]["items"]["oneOf"][1];
  Keys with_command = KeysOf(task["properties"]);
  with_command.insert("command");
  EXPECT_EQ(with_command, Taken("tasks: [{task: gsm8k, QQQQQQQQ: 1}]\nengine: {name: emulated}\n"));
  const Json& command = schema["properties"]["tasks"]["items"]["oneOf"][2];
  const std::string begin = "engine: {name: emulated}\ntasks: [{command: [a], name: a, ";
  Keys with_others = KeysOf(command["properties"]);
  with_others.merge(KeysOf(task["properties"]));
  EXPECT_EQ(with_others, Taken(begin + "results: {file: a, scores: {b: $.b}}, QQQQQQQQ: 1}]\n"));
  EXPECT_EQ(KeysOf(command["properties"]["results"]["properties"]),
            Taken(begin + "results: {file: a, scores: {b: $.b}, QQQQQQQQ: 1}}]\n"));
  EXPECT_EQ(KeysOf(schema["properties"]["metrics"]["properties"]["sandbox"]["properties"]),
            KeysOf(ToJson(SandboxOptions())));
}

// The list that says where a misplaced key belongs.
TEST(Schema, HintsKnowEveryKey) {
  const Json schema = Schema();
  for (const EvalKeys& mapping : AllEvalKeys()) {
    Json node = schema;
    std::string section = mapping.section;
    if (section.starts_with("tasks[]")) {
      node = {{"properties", Json::object()}};
      for (const Json& form : schema["properties"]["tasks"]["items"]["oneOf"]) {
        if (form.contains("properties")) node["properties"].update(form["properties"]);
      }
      if (section == "tasks[].results") node = Json(node["properties"]["results"]);
    } else {
      for (const std::string& part :
           section.empty() ? std::vector<std::string>() : Split(section, '.')) {
        const bool list = part.ends_with("[]");
        node = node["properties"][list ? part.substr(0, part.size() - 2) : part];
        if (list) node = Json(node["items"]);
      }
    }
    EXPECT_EQ(KeysOf(node["properties"]), Keys(mapping.keys.begin(), mapping.keys.end()))
        << section;
  }
}

TEST(Schema, GatesAreTheParsers) {
  const Json gates = Schema()["properties"]["gates"];
  EXPECT_EQ(
      KeysOf(gates["properties"]),
      Taken(std::string(kTop) + "gates: {rules: [{task: a, metric: b, min: 0}], QQQQQQQQ: 1}\n"));
  EXPECT_EQ(
      KeysOf(gates["properties"]["rules"]["items"]["properties"]),
      Taken(std::string(kTop) + "gates: {rules: [{task: a, metric: b, min: 0, QQQQQQQQ: 1}]}\n"));
}

TEST(Schema, EveryEngineIsTheParsers) {
  const Json schema = Schema();
  const Json& names = schema["properties"]["engine"]["properties"]["name"]["enum"];
  const std::vector<std::string> listed = EngineNames();
  EXPECT_EQ(Keys(names.begin(), names.end()), Keys(listed.begin(), listed.end()));
  for (const Json& name : names) {
    EXPECT_NO_THROW(ParseEvalConfig(
        "tasks: [gsm8k]\ncheckpoint: /\nengine: {name: " + name.get<std::string>() + "}\n",
        "/somewhere/eval.yaml", {}))
        << name;
  }
}

}  // namespace
}  // namespace evald
