#pragma once

#include <filesystem>
#include <string>

namespace evald::parity {

/// Remembers on disk what has passed the parity check, over processes. A memory that cannot be read
/// or written is a warning: then every load is checked.
class Passed {
 public:
  /// `folder`: private to this user, made with the first entry; empty: nothing is remembered.
  explicit Passed(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// `what`: a text that names all that the verdict depends on.
  bool Has(const std::string& what) const;
  void Add(const std::string& what) const;

 private:
  std::filesystem::path FileOf(const std::string& what) const;

  std::filesystem::path folder_;
};

}  // namespace evald::parity
