#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// Builds a value from the events of nlohmann's parser, as Json::parse does: if an object has a key
/// twice, it has it once, in the first place, with the last value. Json::parse compares each key of
/// an object with all keys before it. This takes O(n log n) for n keys, whatever they are.
class JsonTree {
 public:
  Json Take() { return std::move(root_); }

  // ---- nlohmann's SAX interface
  bool null() { return Put(nullptr); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(int64_t value) { return Put(value); }
  bool number_unsigned(uint64_t value) { return Put(value); }
  bool number_float(double value, const std::string&) { return Put(value); }
  bool string(std::string& value) { return Put(std::move(value)); }
  bool binary(Json::binary_t& value) { return Put(std::move(value)); }
  bool start_object(size_t) { return Open(Json::object()); }
  bool key(std::string& name);
  bool end_object();
  bool start_array(size_t) { return Open(Json::array()); }
  bool end_array() { return Close(); }
  template <typename Failure>
  bool parse_error(size_t, const std::string&, const Failure& failure) {
    throw failure;
  }

 private:
  bool Put(Json value) {
    *Place() = std::move(value);
    return true;
  }
  bool Open(Json empty);
  bool Close() {
    open_.pop_back();
    return true;
  }
  /// Where the next value goes.
  Json* Place();

  Json root_;
  std::vector<Json*> open_;  ///< lists and objects that are not at their end, from outside
  Json* member_ = nullptr;   ///< the value of the last key
};

}  // namespace evald
