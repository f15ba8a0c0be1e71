#include "orchestrator/staging/fingerprint.h"

#include <algorithm>

#include "base/hash.h"

namespace evald {

std::string TreeFingerprint(std::vector<HashedFile> files) {
  std::sort(files.begin(), files.end(),
            [](const HashedFile& a, const HashedFile& b) { return a.name < b.name; });
  Hasher tree;
  tree.Update("evald-tree-1\n");
  for (const HashedFile& file : files) {
    Hasher content;
    for (const std::string& chunk : file.chunks) content.Update(chunk);
    const char separator = '\0';
    tree.Update(file.name);
    tree.Update(&separator, 1);
    tree.Update(std::to_string(file.bytes));
    tree.Update(&separator, 1);
    tree.Update(content.Hex());
    tree.Update("\n");
  }
  return tree.Hex();
}

bool IsFingerprint(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace evald
