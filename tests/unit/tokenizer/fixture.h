#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"
#include "tokenizer/tokenizer.h"

namespace evald {

inline std::filesystem::path GoldenFolder() {
  return std::filesystem::path(EVALD_SOURCE_DIR) / "tests/golden/tokenizer";
}

/// A small tokenizer.json to be changed: a, b, c, ab, abc. ab is merged first.
inline Json SmallTokenizer() {
  return Json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
    "normalizer": null, "pre_tokenizer": null, "post_processor": null, "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
              "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
              "ignore_merges": false,
              "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4, "bc": 5},
              "merges": [["a", "b"], "ab c", ["b", "c"]]}})");
}

inline std::unique_ptr<Tokenizer> Small(const Json& json) {
  return Tokenizer::Parse(json.dump(), "small.json");
}

/// The message of the refusal, or "" if the tokenizer is accepted.
inline std::string Refusal(const std::string& text) {
  return RefusalOf([&] { Tokenizer::Parse(text, "small.json"); });
}

using Ids = std::vector<int32_t>;

}  // namespace evald
