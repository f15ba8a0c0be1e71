#pragma once
// The templates of jsonl.h.

#include <cstdint>
#include <type_traits>
#include <vector>

namespace evald {
namespace json_field {

template <typename T>
struct Is;
template <>
struct Is<bool> {
  static constexpr const char* kName = "true or false";
  static bool Holds(const Json& v) { return v.is_boolean(); }
};
template <>
struct Is<int64_t> {
  static constexpr const char* kName = "an integer";
  static bool Holds(const Json& v) {
    return v.is_number_integer() &&
           (!v.is_number_unsigned() || v.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX));
  }
};
template <>
struct Is<int> {
  static constexpr const char* kName = "a 32-bit integer";
  static bool Holds(const Json& v) {
    return Is<int64_t>::Holds(v) && v.get<int64_t>() >= INT32_MIN && v.get<int64_t>() <= INT32_MAX;
  }
};
template <>
struct Is<uint64_t> {
  static constexpr const char* kName = "an integer of at least 0";
  static bool Holds(const Json& v) {
    return v.is_number_unsigned() || (v.is_number_integer() && v.get<int64_t>() >= 0);
  }
};
template <>
struct Is<double> {
  static constexpr const char* kName = "a number";
  static bool Holds(const Json& v) { return v.is_number(); }
};
template <>
struct Is<std::string> {
  static constexpr const char* kName = "a string";
  static bool Holds(const Json& v) { return v.is_string(); }
};
template <>
struct Is<Json> {
  static constexpr const char* kName = "a value";
  static bool Holds(const Json&) { return true; }
};
template <typename T>
struct Is<std::vector<T>> {
  static constexpr const char* kName = "a list";
  static bool Holds(const Json& v) {
    if (!v.is_array()) return false;
    for (const Json& item : v) {
      if (!Is<T>::Holds(item)) return false;
    }
    return true;
  }
};

}  // namespace json_field

template <typename T>
T Field(const Json& object, const std::string& key, const std::string& where) {
  if (object.is_object()) {
    const auto found = object.find(key);
    if (found != object.end() && json_field::Is<T>::Holds(*found)) return found->template get<T>();
  }
  ThrowField(object, key, json_field::Is<T>::kName, where);
}

template <typename T>
T FieldOr(const Json& object, const std::string& key, T fallback, const std::string& where) {
  if (object.is_object()) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return fallback;
  }
  return Field<T>(object, key, where);
}

}  // namespace evald
