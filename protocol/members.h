#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/jsonl.h"
#include "protocol/messages.h"

/// How messages are turned into JSON and back. A message lists its members once, in a function
/// `Members(visitor, message)` beside it, under their names on the wire; an encoder and a decoder
/// walk the list. Internal to this room.
namespace evald::protocol {

struct MemberEncoder;

/// A part of a message that has members of its own.
template <typename T>
concept HasMembers = requires(MemberEncoder& visitor, T& part) { Members(visitor, part); };

struct MemberEncoder {
  Json json = Json::object();

  template <typename T>
  void operator()(const char* name, T& value) {
    json[name] = value;
  }
  void operator()(const char* name, Message& message) { json[name] = ToJson(message); }
  template <HasMembers T>
  void operator()(const char* name, std::vector<T>& parts) {
    Json list = Json::array();
    for (T& part : parts) {
      MemberEncoder inner;
      Members(inner, part);
      list.push_back(std::move(inner.json));
    }
    json[name] = std::move(list);
  }
};

/// Throws Error(kInput) that names `where` and the member which is absent or of a wrong type.
struct MemberDecoder {
  const Json& json;
  const std::string where;

  template <typename T>
  void operator()(const char* name, T& value) {
    value = Field<T>(json, name, where);
  }
  void operator()(const char* name, Message& message) { message = MessageFromJson(Field<Json>(json, name, where)); }
  template <HasMembers T>
  void operator()(const char* name, std::vector<T>& parts) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_array()) ThrowField(json, name, "a list", where);
    for (const Json& item : *found) {
      MemberDecoder inner{item, fmt::format("{}: {}[{}]", where, name, parts.size())};
      T part;
      Members(inner, part);
      parts.push_back(std::move(part));
    }
  }
};

}  // namespace evald::protocol
