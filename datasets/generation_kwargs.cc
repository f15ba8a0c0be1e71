#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "checkpoint/generation_config.h"
#include "datasets/task_config.h"
#include "evald/error.h"
#include "python/number.h"

namespace evald {
namespace {

[[noreturn]] void FailKwargs(const std::string& where, const std::string& message) {
  throw Error(ErrorKind::kInput, where + ": " + message);
}

// float(value): the harness accepts a text that is a number.
double Number(const Json& value, const std::string& key, const std::string& where) {
  if (value.is_number()) return value.get<double>();
  const auto number =
      value.is_string() ? python::ParseFloat(value.get_ref<const std::string&>()) : std::nullopt;
  if (number) return *number;
  FailKwargs(where,
             fmt::format("generation_kwargs.{} is {}, expected a number", key, value.dump()));
}

// int(value): the harness accepts a number with a fraction, which it cuts off, and a text that is
// an integer.
Json Whole(const Json& value) {
  if (value.is_string()) {
    const auto number = python::ParseInt(value.get_ref<const std::string&>(), 10);
    return number ? Json(*number) : value;
  }
  if (!value.is_number_float() || std::abs(value.get<double>()) > INT32_MAX) return value;
  return static_cast<int64_t>(value.get<double>());
}

int Integer(const Json& value, const std::string& key, const std::string& where, int64_t least) {
  if (value.is_number_integer() && value.get<int64_t>() >= least &&
      value.get<int64_t>() <= INT32_MAX) {
    return value.get<int>();
  }
  FailKwargs(where, fmt::format("generation_kwargs.{} is {}, expected an integer of at least {}",
                                key, value.dump(), least));
}

std::vector<std::string> Until(const Json& value, const std::string& where) {
  std::vector<std::string> until;
  if (value.is_null()) return until;
  for (const Json& stop : value.is_array() ? value : Json::array({value})) {
    if (!stop.is_string())
      FailKwargs(where, "generation_kwargs.until is not text or a list of texts");
    until.push_back(stop.get<std::string>());
  }
  return until;
}

}  // namespace

SamplingParams SamplingFromKwargs(const Json& kwargs, const std::string& where) {
  static const std::vector<std::string> kLengthKeys = {"max_gen_toks", "max_new_tokens",
                                                       "max_tokens", "max_completion_tokens"};
  SamplingParams params;
  std::optional<bool> do_sample;
  std::optional<double> temperature;
  for (const auto& item : kwargs.items()) {
    const std::string& key = item.key();
    const Json& value = item.value();
    if (key == "until") {
      params.until = Until(value, where);
    } else if (key == "do_sample") {
      if (value.is_null()) continue;  // as if it were absent
      if (!value.is_boolean())
        FailKwargs(where, "generation_kwargs.do_sample is not true or false");
      do_sample = value.get<bool>();
    } else if (key == "temperature") {
      temperature = Number(value, key, where);
    } else if (std::find(kLengthKeys.begin(), kLengthKeys.end(), key) == kLengthKeys.end()) {
      if (key == "max_length") Integer(value, key, where, 1);
      params.settings[key] = value;
    }
  }
  for (const std::string& key : kLengthKeys) {
    if (!kwargs.contains(key) || kwargs.at(key).is_null()) continue;
    params.max_gen_toks = Integer(Whole(kwargs.at(key)), key, where, 1);
    break;
  }
  params.do_sample = do_sample.value_or(temperature.value_or(0.0) > 0.0);
  for (const auto& [key, value] : params.settings.items()) {
    CheckGenerationSetting(key, value, params.do_sample, where);
  }
  if (!params.do_sample || !temperature) return params;
  if (*temperature <= 0.0) {
    FailKwargs(where, "generation_kwargs asks for sampling (do_sample) at a temperature of 0");
  }
  if (!kwargs.at("temperature").is_number()) {  // generate() looks at the text itself
    FailKwargs(where,
               fmt::format("generation_kwargs.temperature is {}, expected a number for sampling",
                           kwargs.at("temperature").dump()));
  }
  params.settings["temperature"] = *temperature;
  return params;
}

}  // namespace evald
