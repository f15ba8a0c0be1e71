#include "evald/engine_info.h"

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald {

Json ToJson(const EngineInfo& info) {
  Json kinds = Json::array();
  for (const RequestKind kind : info.kinds) kinds.push_back(ToString(kind));
  Json json = Json::object();
  json["name"] = info.name;
  json["version"] = info.version;
  json["kinds"] = std::move(kinds);
  json["max_length"] = info.max_length;
  json["deterministic"] = info.deterministic;
  json["wants_tokens"] = info.wants_tokens;
  json["emulated"] = info.emulated;
  json["concurrency"] = info.concurrency;
  json["device"] = info.device;
  if (!info.device_id.empty()) json["device_id"] = info.device_id;
  if (!info.driver.empty()) json["driver"] = info.driver;
  if (info.fast) json["fast"] = true;
  if (!info.parity.empty()) json["parity"] = info.parity;
  if (!info.model.empty()) json["model"] = info.model;
  json["follows"] = info.follows;
  return json;
}

EngineInfo EngineInfoFromJson(const Json& json, const std::string& where) {
  EngineInfo info;
  info.name = Field<std::string>(json, "name", where);
  info.version = Field<std::string>(json, "version", where);
  for (const std::string& kind : Field<std::vector<std::string>>(json, "kinds", where)) {
    try {
      info.kinds.push_back(RequestKindFromString(kind));
    } catch (Error& e) {
      throw e.AddContext(where + ": kinds");
    }
  }
  info.max_length = Field<int>(json, "max_length", where);
  info.deterministic = Field<bool>(json, "deterministic", where);
  info.wants_tokens = Field<bool>(json, "wants_tokens", where);
  info.emulated = Field<bool>(json, "emulated", where);
  info.concurrency = Field<int>(json, "concurrency", where);
  info.device = FieldOr<std::string>(json, "device", "", where);
  info.device_id = FieldOr<std::string>(json, "device_id", "", where);
  info.driver = FieldOr<std::string>(json, "driver", "", where);
  info.fast = FieldOr<bool>(json, "fast", false, where);
  info.parity = FieldOr<std::string>(json, "parity", "", where);
  info.model = FieldOr<std::string>(json, "model", "", where);
  info.follows = FieldOr<bool>(json, "follows", false, where);
  return info;
}

}  // namespace evald
