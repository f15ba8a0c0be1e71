#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace evald::sandbox_test {

/// Programs of one language for languages_test.cc.
struct LanguagePrograms {
  std::string language;
  std::string sum;      ///< reads whole numbers, prints their sum
  std::string asserts;  ///< ends with status 0
  std::string fails;    ///< its test fails: another status
  std::string loop;     ///< never ends
  std::string memory;   ///< allocates and uses memory without end
  /// Prints the name of each of these that is not refused: "fork" (but for a shell), "write" (to
  /// /usr, /etc or /), "read" (of /etc/shadow or /etc/passwd), "network"
  std::string attacks;
  std::string flood;  ///< prints without end
};

/// For messages of a failed test.
inline void PrintTo(const LanguagePrograms& programs, std::ostream* out) {
  *out << programs.language;
}

const std::vector<LanguagePrograms>& AllLanguagePrograms();

}  // namespace evald::sandbox_test
