#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/jsonl.h"
#include "evald/error.h"
#include "protocol/checks.h"
#include "protocol/messages.h"

/// The translation of messages into JSON and back. A message lists its members once, under their
/// names on the wire, in a function `Members(visitor, message)` beside it. An encoder and a decoder
/// walk the list. Each decoded message is checked against its bounds (checks.h). Internal to this
/// room.
namespace evald::protocol {

struct MemberEncoder;

/// A part of a message with members of its own.
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
  template <typename T>
  void Optional(const char* name, T& value) {
    (*this)(name, value);
  }
};

/// Throws Error(kInput) that names `where` and the member, if it is absent or of a wrong type.
struct MemberDecoder {
  const Json& json;
  const std::string where;

  template <typename T>
  void operator()(const char* name, T& value) {
    value = Field<T>(json, name, where);
  }
  /// A member that an earlier version does not send keeps its default.
  template <typename T>
  void Optional(const char* name, T& value) {
    value = FieldOr<T>(json, name, value, where);
  }
  template <HasMembers T>
  void Optional(const char* name, std::vector<T>& parts) {
    if (json.contains(name)) (*this)(name, parts);
  }
  void operator()(const char* name, Message& message) {
    message = MessageFromJson(Field<Json>(json, name, where));
  }
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

/// A message and the name of its kind, `types[message.index()]`, as JSON.
template <typename V>
Json VariantToJson(const V& message, const char* const (&types)[std::variant_size_v<V>]) {
  MemberEncoder encoder;
  encoder.json["type"] = types[message.index()];
  // Members() is shared with the decoder and therefore takes a mutable message.
  std::visit([&](auto copy) { Members(encoder, copy); }, message);
  return std::move(encoder.json);
}

/// The message from JSON whose "type" is `type`. Throws Error(kInput) if it is none of `types`;
/// `scope` completes that error.
template <typename V, size_t I = 0>
V VariantFromJson(const std::string& type, const Json& json,
                  const char* const (&types)[std::variant_size_v<V>], const char* scope = "") {
  if constexpr (I == std::variant_size_v<V>) {
    throw Error(ErrorKind::kInput, fmt::format("unknown message type '{}'{}", type, scope),
                "both ends must be of the same version of evald");
  } else {
    if (type != types[I]) return VariantFromJson<V, I + 1>(type, json, types, scope);
    std::variant_alternative_t<I, V> message;
    MemberDecoder decoder{json, fmt::format("message '{}'", type)};
    Members(decoder, message);
    Check(message, decoder.where);
    return message;
  }
}

}  // namespace evald::protocol
