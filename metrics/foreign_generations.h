#pragma once

#include <map>
#include <string>
#include <vector>

#include "evald/generation.h"
#include "metrics/generations_input.h"

namespace evald {

/// Turns the lines of one form into generations. Throws Error(kInput) "<where>: ...".
class ForeignReader {
 public:
  virtual ~ForeignReader() = default;
  /// The generations of one line. None if it repeats an earlier line (another filter's sample).
  virtual std::vector<Generation> Read(const Json& line, const std::string& where) = 0;
  virtual int64_t other_prompts() const { return 0; }
  /// Whether the line answers a document that a limit left out of the task.
  virtual bool IsBeyondLimit(const Json& line) const = 0;
};

/// The form of a line. Throws Error(kInput) with the keys found and the known forms.
GenerationsForm FormOf(const Json& line, const std::string& where);

std::unique_ptr<ForeignReader> MakeForeignReader(GenerationsForm form, const PreparedTask& task);

}  // namespace evald
