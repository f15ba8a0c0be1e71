#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "prepared/prepared_task.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {

inline Request Scored(int64_t doc_id, int idx, const std::string& context,
                      const std::string& continuation) {
  Request request;
  request.doc_id = doc_id;
  request.idx = idx;
  request.kind = RequestKind::kLoglikelihood;
  request.context = context;
  request.continuation = continuation;
  return request;
}

inline Request Generated(int64_t doc_id, int idx, const std::string& context,
                         std::vector<std::string> until) {
  Request request;
  request.doc_id = doc_id;
  request.idx = idx;
  request.context = context;
  request.sampling.until = std::move(until);
  request.sampling.max_gen_toks = 1024;
  return request;
}

/// Three documents: four choices, none at all, and generations with changing parameters.
inline std::filesystem::path WriteExample(const std::filesystem::path& cache) {
  const std::filesystem::path directory = cache / "prepared" / "0123abcd";
  PreparedTaskWriter writer(directory, {{"name", "example"}, {"repeats", 2}});
  writer.Add({0, {{"q", "π?\n"}}, 2, {"A", "B", "C", "D"}},
             {Scored(0, 0, "Answer:", " A"), Scored(0, 1, "Answer:", " B"),
              Scored(0, 2, "Other:", " C"), Scored(0, 3, "Other:", "")});
  writer.Add({1, {{"q", ""}}, "t", nullptr}, {});
  writer.Add(
      {2, {{"q", 1.5}}, {"x", "y"}, nullptr},
      {Generated(2, 0, "", {"\n\n", "Q:"}), Generated(2, 1, "c", {"\n\n", "Q:"}),
       Scored(2, 2, "c", "d"), Generated(2, 3, "c", {"\n\n", "Q:"}), Generated(2, 4, "e", {})});
  writer.Finish();
  return directory;
}

}  // namespace evald
