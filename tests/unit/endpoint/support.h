#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "evald/json.h"
#include "worker/endpoint/api_error.h"
#include "worker/endpoint/served_model.h"
#include "worker/engine/engine.h"

namespace evald::endpoint::test {

/// A small Llama model with a byte-level tokenizer and a context of 2,048 tokens.
std::filesystem::path Checkpoint();

/// evald's own engine with that checkpoint.
std::unique_ptr<Engine> LoadedEngine();

/// The parts of that checkpoint, with a chat template: "<role>: <content>\n" for each message.
ServedModel Model();

/// The error of `action`; one of status 0 if it throws none.
template <typename Action>
ApiError ErrorOf(Action&& action) {
  try {
    action();
  } catch (const ApiError& error) {
    return error;
  }
  return ApiError(0, "nothing was thrown");
}

}  // namespace evald::endpoint::test
