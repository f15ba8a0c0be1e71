// power_cut SHADOW ROOT TARGET SEED: makes in TARGET the content of ROOT's disk after a power cut.
//
// With seed 0 only fsynced data survives. With another seed some of the rest survives too, since a
// disk writes in its own order. Each name that changed since its folder was fsynced, and each 4 KiB
// block of a file that changed since the file was fsynced, is the old or the new one at random.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <sstream>

#include "tests/faults/disk_model.h"

namespace {

namespace fs = std::filesystem;

struct Entry {
  bool is_folder = false;
  std::string key;
  bool operator==(const Entry&) const = default;
};
using Entries = std::map<std::string, Entry>;

std::string Read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Cut {
 public:
  Cut(fs::path shadow, unsigned seed) : shadow_(std::move(shadow)), seed_(seed), random_(seed) {}

  // `now` is the folder at the power cut; empty if its name is gone.
  void Folder(const std::string& key, const fs::path& now, const fs::path& target) {
    fs::create_directories(target);
    const Entries before = Synced(key), after = Present(now);
    std::map<std::string, int> names;
    for (const auto& [name, entry] : before) names[name];
    if (seed_ != 0) {
      for (const auto& [name, entry] : after) names[name];
    }
    for (const auto& [name, unused] : names) {
      const auto old = before.find(name), fresh = after.find(name);
      const bool same = old != before.end() && fresh != after.end() && old->second == fresh->second;
      const bool take_fresh = same || Coin();
      const auto& chosen = take_fresh ? fresh : old;
      if (chosen == (take_fresh ? after.end() : before.end())) continue;
      const bool is_there = fresh != after.end() && fresh->second == chosen->second;
      const fs::path where = is_there ? now / name : fs::path();
      if (chosen->second.is_folder) {
        Folder(chosen->second.key, where, target / name);
      } else {
        File(chosen->second.key, where, target / name);
      }
    }
  }

 private:
  bool Coin() { return seed_ != 0 && (random_() & 1) != 0; }

  Entries Synced(const std::string& key) const {
    Entries entries;
    std::istringstream lines(Read(shadow_ / "names" / key));
    std::string kind, inode, name;
    while (lines >> kind >> inode && std::getline(lines >> std::ws, name))
      entries[name] = {kind == "d", inode};
    return entries;
  }

  static Entries Present(const fs::path& folder) {
    Entries entries;
    if (folder.empty()) return entries;
    for (const auto& entry : fs::directory_iterator(folder)) {
      Entry found;
      found.key = disk::InodeKey(AT_FDCWD, entry.path().c_str(), &found.is_folder);
      if (!found.key.empty()) entries[entry.path().filename().string()] = found;
    }
    return entries;
  }

  void File(const std::string& key, const fs::path& now, const fs::path& target) {
    constexpr size_t kBlock = 4096;
    std::string bytes = Read(shadow_ / "data" / key);
    if (seed_ != 0 && !now.empty()) {
      const std::string fresh = Read(now);
      // the new length survived; blocks that did not are zeros
      if (Coin()) bytes.resize(fresh.size());
      for (size_t at = 0; at < std::min(bytes.size(), fresh.size()); at += kBlock) {
        const size_t count = std::min(kBlock, std::min(bytes.size(), fresh.size()) - at);
        if (Coin()) bytes.replace(at, count, fresh, at, count);
      }
    }
    std::ofstream(target, std::ios::binary) << bytes;
  }

  fs::path shadow_;
  unsigned seed_;
  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: power_cut SHADOW ROOT TARGET SEED\n";
    return 2;
  }
  bool is_folder = false;
  const std::string key = disk::InodeKey(AT_FDCWD, argv[2], &is_folder);
  if (key.empty() || !is_folder) {
    std::cerr << "power_cut: " << argv[2] << ": no folder\n";
    return 2;
  }
  Cut(argv[1], static_cast<unsigned>(std::stoul(argv[4]))).Folder(key, argv[2], argv[3]);
  return 0;
}
