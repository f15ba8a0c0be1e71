#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "evald/error.h"

namespace evald {

/// Several errors of one input, found in one pass, so that a person can mend them together. As an
/// Error it has the kind of the first, and names them one after another on one line.
class Problems : public Error {
 public:
  /// `each` has at least two errors.
  explicit Problems(std::vector<Error> each);

  const std::vector<Error>& each() const { return each_; }

 private:
  std::vector<Error> each_;
};

/// The errors that `error` stands for: those of a Problems, or itself.
std::vector<Error> EachOf(const Error& error);

/// Collects errors of files and settings. Errors of the host (kInfrastructure, kInternal) are not
/// collected: with them, what else is found means nothing.
class ProblemList {
 public:
  /// Adds an error, or each of a Problems. An error whose text is in the list already is not added
  /// again. Throws an error of the host.
  void Add(const Error& error);

  /// Calls `work` and adds the error that it throws. False if it threw.
  template <typename Work>
  bool Try(Work work) {
    try {
      work();
      return true;
    } catch (const Error& error) {
      Add(error);
    }
    return false;
  }

  bool empty() const { return errors_.empty(); }
  size_t size() const { return errors_.size(); }

  /// Throws the one error of the list, or a Problems. Does nothing if the list is empty.
  void ThrowIfAny() const;

 private:
  std::vector<Error> errors_;
};

}  // namespace evald
