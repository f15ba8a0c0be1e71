#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "evald/json.h"
#include "http_server/message.h"

namespace evald::api {

// Upper limits for requests.
inline constexpr uint64_t kEvalBytesMax = 1 << 20;  ///< an eval.yaml, or a body that holds one
inline constexpr size_t kPathLengthMax = 4096;
inline constexpr size_t kNameLengthMax = 200;
inline constexpr size_t kOverridesMax = 100;
inline constexpr size_t kBodyValuesMax = 10'000;  ///< values and keys of a body

/// Reads a request's JSON object strictly. Each member is read once; then Finish() refuses members
/// that were not read, and names the nearest valid name. Throws ProblemError(400) that points at
/// the member. Lengths are in characters.
class BodyReader {
 public:
  /// Throws ProblemError 400 if the body is no JSON object, is nested deeper than 200 levels, or
  /// has more than kBodyValuesMax values.
  explicit BodyReader(std::string_view body);

  std::optional<std::string> String(const std::string& name, size_t length_max);
  /// `least` and `most` lie within 2^53 of 0.
  std::optional<int64_t> Integer(const std::string& name, int64_t least, int64_t most);
  std::optional<double> Number(const std::string& name, double least, double most);
  /// One of `choices`.
  std::optional<std::string> Choice(const std::string& name,
                                    const std::vector<std::string>& choices);
  std::optional<std::vector<std::string>> Strings(const std::string& name, size_t count_max,
                                                  size_t length_max);
  std::optional<Json> Object(const std::string& name);
  void Finish() const;

  [[noreturn]] static void Refuse(const std::string& pointer, const std::string& detail);

 private:
  const Json* Find(const std::string& name);

  Json body_;
  std::vector<std::string> known_;
};

/// The same for a query.
class QueryReader {
 public:
  explicit QueryReader(const http::Request& request) : request_(request) {}

  std::optional<std::string> String(const std::string& name, size_t length_max);
  std::optional<int64_t> Integer(const std::string& name, int64_t least, int64_t most);
  std::optional<bool> Bool(const std::string& name);
  /// One of `choices`.
  std::optional<std::string> Choice(const std::string& name,
                                    const std::vector<std::string>& choices);
  /// A parameter that may be given several times.
  std::vector<std::string> Strings(const std::string& name, size_t count_max, size_t length_max);
  void Finish() const;

 private:
  [[noreturn]] static void Refuse(const std::string& name, const std::string& detail);

  const http::Request& request_;
  std::vector<std::string> known_;
};

/// The text of an eval.yaml that a body gives as `config` or as `yaml`. Throws ProblemError(400)
/// unless exactly one is given.
std::string EvalText(const std::optional<Json>& config, const std::optional<std::string>& yaml);

/// The media type of Content-Type in lower case, without parameters; "" if there is none.
std::string MediaType(const http::Request& request);

/// Parses a decimal integer without leading zeros; nothing for any other text.
std::optional<int64_t> ParseInteger(std::string_view text);

}  // namespace evald::api
