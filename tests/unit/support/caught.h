#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "evald/error.h"

namespace evald {

/// The Error that `action` throws. Fails the test if it throws none.
template <typename Action>
Error Caught(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::kInternal, "nothing was thrown");
}

/// The text of the Error that `action` throws; "" if it throws none. An Error of another kind than
/// `kind` fails the test.
template <typename Action>
std::string CaughtText(Action&& action, std::optional<ErrorKind> kind = std::nullopt) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind.value_or(error.kind())) << error.what();
    return error.what();
  }
  return "";
}

/// The same for input that is refused.
template <typename Action>
std::string RefusalOf(Action&& action) {
  return CaughtText(action, ErrorKind::kInput);
}

}  // namespace evald
