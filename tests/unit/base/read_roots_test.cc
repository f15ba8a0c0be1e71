#include "base/read_roots.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

class ReadRootsTest : public ::testing::Test {
 protected:
  ReadRootsTest() {
    root_ = folder_ / "root";
    fs::create_directories(root_ / "sub");
    fs::create_directories(folder_ / "outside");
    Put(root_ / "file", "inside");
    Put(root_ / "sub" / "deep", "deep");
    Put(folder_ / "outside" / "secret", "secret");
  }

  static void Put(const fs::path& file, const std::string& text) { std::ofstream(file) << text; }
  ReadRoots Roots() const { return ReadRoots({root_}); }
  // The content of the file; "" for a refusal.
  static std::string Read(const ReadRoots& roots, const fs::path& path) {
    std::string content;
    RefusalOf([&] { content = roots.Read(path); });
    return content;
  }
  // The error, without the path that was asked for.
  static std::string Refusal(const ReadRoots& roots, const fs::path& path) {
    std::string text = Caught([&] { roots.OpenFile(path); }).what();
    const size_t at = text.find(path.string());
    return at == std::string::npos ? text : text.erase(at, path.string().size());
  }

  TemporaryFolder folder_;
  fs::path root_;
};

TEST_F(ReadRootsTest, ReadsWhatLiesInside) {
  EXPECT_EQ(Read(Roots(), root_ / "file"), "inside");
  EXPECT_EQ(Read(Roots(), root_ / "sub" / ".." / "." / "file"), "inside");
  EXPECT_EQ(Read(ReadRoots({"/"}), folder_ / "outside" / "secret"), "secret");
}

TEST_F(ReadRootsTest, FollowsLinksThatStayInside) {
  fs::create_symlink("sub/deep", root_ / "relative");
  fs::create_symlink(root_ / "sub" / "deep", root_ / "absolute");
  fs::create_symlink("../file", root_ / "sub" / "up");
  fs::create_directory_symlink(root_ / "sub", root_ / "folder");
  EXPECT_EQ(Read(Roots(), root_ / "relative"), "deep");
  EXPECT_EQ(Read(Roots(), root_ / "absolute"), "deep");
  EXPECT_EQ(Read(Roots(), root_ / "sub" / "up"), "inside");
  EXPECT_EQ(Read(Roots(), root_ / "folder" / "deep"), "deep");
}

TEST_F(ReadRootsTest, GoesFromOneRootToAnother) {
  fs::create_symlink("../outside/secret", root_ / "relative");
  fs::create_symlink(folder_ / "outside" / "secret", root_ / "absolute");
  const ReadRoots both({root_, folder_ / "outside"});
  EXPECT_EQ(Read(both, root_ / "relative"), "secret");
  EXPECT_EQ(Read(both, root_ / "absolute"), "secret");
  EXPECT_EQ(Read(both, root_ / ".." / "outside" / "secret"), "secret");
}

TEST_F(ReadRootsTest, KnowsARootThatIsALinkByBothOfItsNames) {
  fs::create_directory_symlink(root_, folder_ / "alias");
  fs::create_symlink(root_ / "sub" / "deep", root_ / "real");
  fs::create_symlink(folder_ / "alias" / "sub" / "deep", root_ / "written");
  const ReadRoots roots({folder_ / "alias"});
  for (const char* name : {"real", "written"}) {
    EXPECT_EQ(Read(roots, folder_ / "alias" / name), "deep");
    EXPECT_EQ(Read(roots, root_ / name), "deep");
  }
}

TEST_F(ReadRootsTest, SaysTheSameOfWhatIsOutsideAndOfWhatIsNotThere) {
  const std::string absent = Refusal(Roots(), root_ / "absent");
  EXPECT_NE(absent.find("is not there, or lies outside the folders"), std::string::npos);
  fs::create_symlink(folder_ / "outside" / "secret", root_ / "absolute");
  fs::create_symlink("../outside/secret", root_ / "relative");
  fs::create_directory_symlink(folder_ / "outside", root_ / "folder");
  fs::create_symlink("loop", root_ / "loop");
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  for (const fs::path& path :
       {root_ / "absolute", root_ / "relative", root_ / "folder" / "secret", root_ / "loop",
        root_ / "pipe", root_ / "sub", root_ / "file" / "part", root_ / ".." / "outside" / "secret",
        folder_ / "outside" / "secret", folder_ / "outside" / "absent", folder_ / "rooted" / "x",
        fs::path("/dev/zero"), fs::path("/proc/self/environ"), fs::path("file"), fs::path()}) {
    EXPECT_EQ(Refusal(Roots(), path), absent) << path;
  }
  EXPECT_FALSE(Roots().HasFolder(folder_ / "outside"));
  EXPECT_TRUE(Roots().HasFolder(root_ / "sub"));
}

// A file that may be left out is not left out if a link stands for it.
TEST_F(ReadRootsTest, ALinkThatIsNotFollowedIsNoAbsentFile) {
  fs::create_symlink(folder_ / "outside" / "secret", root_ / "absolute");
  fs::create_symlink("../outside/secret", root_ / "relative");
  fs::create_symlink("../outside/nothing", root_ / "dangling");
  fs::create_symlink("loop", root_ / "loop");
  fs::create_symlink("relative", root_ / "chain");
  fs::create_symlink("sub/absent", root_ / "within");
  fs::create_directory_symlink(folder_ / "outside", root_ / "folder");
  fs::create_directory_symlink("sub", root_ / "alias");
  const ReadFolder root(root_, Roots());
  const auto refusal = [&](const std::string& name) {
    std::string text = RefusalOf([&] { root.HasFile(name); });
    EXPECT_EQ(text, RefusalOf([&] { root.HasFolder(name); })) << name;
    EXPECT_EQ(text, RefusalOf([&] { Roots().HasFile(root_ / name); })) << name;
    EXPECT_EQ(text, RefusalOf([&] { Roots().HasFolder(root_ / name); })) << name;
    struct stat info{};
    EXPECT_FALSE(root.Stat(name, &info)) << name;
    return text.erase(0, (root_ / name).string().size());
  };
  const std::string told = refusal("absolute");
  EXPECT_NE(told.find("a link on its way leads nowhere, or outside"), std::string::npos) << told;
  for (const char* name : {"relative", "dangling", "loop", "chain", "within", "folder/secret",
                           "folder/nothing", "alias/../relative"}) {
    EXPECT_EQ(refusal(name), told) << name;
  }
  // These say nothing of a file that is not there.
  for (const char* name :
       {"absent", "alias/absent", "sub/absent", "file/part", "../outside/secret"})
    EXPECT_FALSE(root.HasFile(name)) << name;
  EXPECT_TRUE(root.HasFile("alias/deep"));
  EXPECT_FALSE(ReadFolder(root_).HasFile("dangling"));
}

// A path through a folder outside and back. The answer does not depend on the existence of that
// folder.
TEST_F(ReadRootsTest, LooksAtNothingOutsideOnItsWay) {
  fs::create_symlink("../outside/../root/file", root_ / "there");
  fs::create_symlink("../absent/../root/file", root_ / "not_there");
  EXPECT_EQ(Read(Roots(), root_ / "there"), Read(Roots(), root_ / "not_there"));
  EXPECT_EQ(Read(Roots(), folder_ / "outside" / ".." / "root" / "file"),
            Read(Roots(), folder_ / "absent" / ".." / "root" / "file"));
}

TEST_F(ReadRootsTest, OpensNoPipesAndDevicesAnywhere) {
  // an open for reading would wait for a writer
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  for (const fs::path& path :
       {root_ / "pipe", fs::path("/dev/zero"), root_ / "sub", root_ / "absent"}) {
    EXPECT_THROW(ReadRoots().OpenFile(path), Error) << path;
    EXPECT_FALSE(ReadRoots().HasFile(path));
  }
  EXPECT_EQ(Read(ReadRoots(), folder_ / "outside" / "secret"), "secret");
}

TEST_F(ReadRootsTest, ReadsNoMoreThanIsAllowed) {
  EXPECT_EQ(Roots().Read(root_ / "file", 6), "inside");
  EXPECT_THROW(Roots().Read(root_ / "file", 5), Error);
}

TEST_F(ReadRootsTest, AFolderStaysTheOneThatWasOpened) {
  const ReadFolder folder(root_ / "sub", Roots());
  ASSERT_TRUE(folder.exists());
  fs::rename(root_ / "sub", root_ / "moved");
  fs::create_directory_symlink(folder_ / "outside", root_ / "sub");
  EXPECT_EQ(folder.Read("deep"), "deep");
  EXPECT_FALSE(folder.HasFile("secret"));
  EXPECT_FALSE(ReadFolder(root_ / "sub", Roots()).exists());
  EXPECT_EQ(folder.Names(".", 10), std::vector<std::string>{"deep"});
}

// Like the cache of the Hugging Face hub, whose files are links from snapshots/<revision> to blobs.
TEST_F(ReadRootsTest, WithRootsNoNameAndARelativeOneAreNoFolder) {
  for (const char* name : {"", "relative", "."}) {
    errno = 0;  // the error of an earlier call is not this one's
    const ReadFolder folder(fs::path(name), Roots());
    EXPECT_FALSE(folder.exists()) << name;
    EXPECT_EQ(folder.failure(), ENOENT) << name;
    EXPECT_FALSE(folder.HasFile("file")) << name;
    EXPECT_FALSE(RefusalOf([&] { folder.Read("file"); }).empty()) << name;
  }
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  errno = 0;
  EXPECT_FALSE(ReadFolder(root_ / "pipe", Roots()).exists());
}

TEST_F(ReadRootsTest, LinksOfAFolderAreFollowedUpToItsRoot) {
  fs::create_directories(root_ / "models" / "snapshots" / "main");
  fs::create_directories(root_ / "models" / "blobs");
  Put(root_ / "models" / "blobs" / "0abc", "weights");
  const fs::path snapshot = root_ / "models" / "snapshots" / "main";
  fs::create_symlink("../../blobs/0abc", snapshot / "inside");
  fs::create_symlink("../../../../outside/secret", snapshot / "outside");
  fs::create_symlink(folder_ / "outside", snapshot / "folder");
  const ReadFolder folder(snapshot, Roots());
  EXPECT_EQ(folder.Read("inside"), "weights");
  EXPECT_TRUE(folder.HasFile("inside"));
  for (const char* name :
       {"outside", "folder/secret", "../../../../outside/secret", "/etc/passwd"}) {
    struct stat info{};
    EXPECT_FALSE(folder.Stat(name, &info)) << name;
    EXPECT_THROW(folder.OpenFile(name), Error) << name;
  }
  EXPECT_THROW(folder.Names("folder", 10), Error);
  EXPECT_FALSE(folder.Folder("folder").exists());
  EXPECT_TRUE(folder.IsLink("inside"));
}

TEST_F(ReadRootsTest, ListsNoMoreThanIsAllowed) {
  for (int i = 0; i < 5; ++i) Put(root_ / "sub" / std::to_string(i), "");
  EXPECT_THROW(ReadFolder(root_ / "sub", Roots()).Names(".", 5), Error);
  EXPECT_EQ(ReadFolder(root_ / "sub", Roots()).Names(".", 6).size(), 6u);
}

// A chain of folders below `folder`. Each is made within the one before, since one path may not be
// so long.
void MakeChain(const fs::path& folder, const std::string& name, int length,
               const std::string& text) {
  UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY));
  for (int i = 0; i < length; ++i) {
    ASSERT_EQ(::mkdirat(fd.get(), name.c_str(), 0700), 0);
    fd.reset(::openat(fd.get(), name.c_str(), O_PATH | O_DIRECTORY));
  }
  const UniqueFd file(::openat(fd.get(), "file", O_WRONLY | O_CREAT, 0600));
  ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

std::string Repeated(const std::string& part, int times) {
  std::string path;
  for (int i = 0; i < times; ++i) path += part;
  return path;
}

size_t OpenFiles() {
  const fs::directory_iterator files("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST_F(ReadRootsTest, APathHasNoMoreBytesPartsAndLinksThanItMay) {
  MakeChain(root_, "d", 300, "far");
  const fs::path near = root_ / Repeated("d/", 250) / "..",
                 far = root_ / Repeated("d/", 256) / "file";
  EXPECT_TRUE(ReadFolder(near, Roots()).exists());
  EXPECT_NE(Refusal(Roots(), far).find("more than 256 parts"), std::string::npos)
      << Refusal(Roots(), far);
  EXPECT_FALSE(Roots().HasFile(far));
  const fs::path around = root_ / (Repeated("sub/../", 200) + "file");  // not deep, but long
  EXPECT_NE(Refusal(Roots(), around).find("more than 256 parts"), std::string::npos);
  fs::create_directory_symlink(Repeated("d/", 200), root_ / "link");
  EXPECT_NE(
      Refusal(Roots(), root_ / "link" / Repeated("d/", 90) / "file").find("more than 256 parts"),
      std::string::npos);
  for (const ReadRoots& roots : {Roots(), ReadRoots()}) {
    const std::string text = Refusal(roots, root_ / std::string(100'000, 'x'));
    EXPECT_NE(text.find("is too long"), std::string::npos) << text;
    EXPECT_LT(text.size(), 1000u);
  }
}

TEST_F(ReadRootsTest, AFolderHoldsOneDescriptorHoweverDeepItLies) {
  MakeChain(root_, "d", 200, "far");
  const size_t before = OpenFiles();
  const ReadFolder folder(root_ / Repeated("d/", 200), Roots());
  EXPECT_TRUE(folder.exists());
  EXPECT_EQ(OpenFiles(), before + 1);
  EXPECT_EQ(folder.Read("file"), "far");
  EXPECT_TRUE(folder.HasFile("../d/file"));
  EXPECT_TRUE(folder.HasFile(Repeated("../", 200) + "file"));
}

TEST_F(ReadRootsTest, UpwardsLeadsToTheFolderThatTheWalkCameThrough) {
  fs::create_directories(root_ / "a" / "b");
  Put(root_ / "a" / "near", "near");
  Put(folder_ / "outside" / "near", "outside");
  const ReadFolder folder(root_ / "a" / "b", Roots());
  EXPECT_EQ(folder.Read("../near"), "near");
  // as anyone with the right to do so might
  fs::rename(root_ / "a" / "b", folder_ / "outside" / "b");
  EXPECT_FALSE(folder.HasFile("../near"));
  EXPECT_THROW(folder.OpenFile("../near"), Error);
}

// A process may have keys in its environment, and other processes of its user could read them
// there.
TEST_F(ReadRootsTest, NothingIsReadOfProcessesAndTheKernelByAnyName) {
  fs::create_symlink("/proc/self/environ", root_ / "link");
  fs::create_directory_symlink("/proc", root_ / "processes");
  const std::string parent = "/proc/" + std::to_string(::getppid());
  for (const fs::path& path :
       {fs::path("/proc/self/environ"), fs::path("/proc/thread-self/environ"),
        fs::path("/proc/self/task/../environ"), fs::path(parent + "/environ"),
        fs::path(parent + "/cmdline"), fs::path("/proc/self/root/proc/self/environ"),
        fs::path("/proc/cpuinfo"), fs::path("/dev/fd/../environ"),
        fs::path("/sys/kernel/uevent_seqnum"), root_ / "link",
        root_ / "processes" / "self" / "environ"}) {
    for (const ReadRoots& roots : {ReadRoots(), ReadRoots({"/"}), ReadRoots({"/proc", root_})}) {
      EXPECT_FALSE(roots.HasFile(path)) << path;
      EXPECT_THROW(roots.OpenFile(path), Error) << path;
    }
  }
  EXPECT_NE(Refusal(ReadRoots(), "/proc/self/environ").find("the kernel shows processes"),
            std::string::npos);
  EXPECT_FALSE(ReadFolder("/proc/self", ReadRoots()).exists());
  EXPECT_THROW(ReadFolder(root_, ReadRoots()).OpenFile("processes/self/environ"), Error);
  EXPECT_FALSE(ReadFolder(root_, ReadRoots()).Folder("processes").exists());
}

}  // namespace
}  // namespace evald
