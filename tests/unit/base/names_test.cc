#include "base/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace evald {
namespace {

using ::testing::HasSubstr;

TEST(Names, TakeWhatTheHarnessUses) {
  for (const char* name : {"gsm8k", "mmlu_flan_cot_fewshot_STEM", "social sciences",
                           "egymmlu_arabic_language_(general)", "_a", "arc-easy.v1.1", "mmlu::stem",
                           "2024", "lr=1e-4,step@100", "c++"}) {
    EXPECT_EQ(WrongWithName(name), "") << name;
  }
  EXPECT_EQ(WrongWithName(std::string(200, 'a')), "");
}

TEST(Names, RefuseWhatIsAPathOrMovesATerminal) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "it is empty"},
      {"../../x", "it holds '/'"},
      {"a/b", "it holds '/'"},
      {"a\\b", "it holds '\\'"},
      {"..", "it begins with '.'"},
      {".hidden", "it begins with '.'"},
      {"-rf", "it begins with '-'"},
      {" a", "it begins with ' '"},
      {"a ", "it ends with a space"},
      {"a\nb", "it holds '\\n'"},
      {std::string("a\0b", 3), "it holds '\\x00'"},
      {"\x1b[2J", "it holds '\\x1b'"},
      {"caf\u00e9", "it holds '\u00e9'"},
      {"a\u202e", "it holds '\\u202e'"},
      {"bad\xff", "it holds '\\xff'"},
      {std::string(201, 'a'), "it has 201 bytes, expected at most 200"},
  };
  for (const auto& [name, wrong] : cases)
    EXPECT_THAT(WrongWithName(name), HasSubstr(wrong)) << name;
}

TEST(Labels, AreTextOnOneLine) {
  for (const char* label : {"step=100", "org/model", "\u6a21\u578b", "-", "/a b"})
    EXPECT_EQ(WrongWithLabel(label), "") << label;
  for (const std::string& label :
       {std::string(), std::string("a\nb"), std::string("\x1b[2J"), std::string("\u009b"),
        std::string("\u202e"), std::string("\xff"), std::string(256, 'a')}) {
    EXPECT_NE(WrongWithLabel(label), "") << label;
  }
}

TEST(FolderNames, OrdinaryNamesStay) {
  for (const std::string& name : {std::string("gsm8k"), std::string("mmlu_STEM"),
                                  std::string("arc-easy.v1"), std::string(200, 'a')}) {
    EXPECT_EQ(FolderNameOf(name), name);
  }
}

TEST(FolderNames, AnyOtherByteIsWrittenOut) {
  EXPECT_EQ(FolderNameOf("../../x"), "%2E.%2F..%2Fx");
  EXPECT_EQ(FolderNameOf("."), "%2E");
  EXPECT_EQ(FolderNameOf(".."), "%2E.");
  EXPECT_EQ(FolderNameOf(""), "%");
  EXPECT_EQ(FolderNameOf("social sciences"), "social%20sciences");
  EXPECT_EQ(FolderNameOf("g::t (a)"), "g%3A%3At%20%28a%29");
  EXPECT_EQ(FolderNameOf("100%"), "100%25");
  EXPECT_EQ(FolderNameOf(std::string("\0\n\xff", 3)), "%00%0A%FF");
}

TEST(FolderNames, LongOnesAreCutAtAWholeByteAndKeptApart) {
  const std::string folder = FolderNameOf(std::string(159, 'a') + std::string(41, ' '));
  EXPECT_EQ(folder.substr(0, 161), std::string(159, 'a') + "%-");
  EXPECT_EQ(folder.size(), 159u + 2 + 32);
  EXPECT_LE(FolderNameOf(std::string(100'000, '/')).size(), 200u);
}

TEST(FolderNames, TwoNamesNeverShareOne) {
  const std::vector<std::string> names = {"",
                                          "%",
                                          "%2E",
                                          ".",
                                          "a/b",
                                          "a%2Fb",
                                          "a%252Fb",
                                          "A/b",
                                          "a//b",
                                          "a b",
                                          "%-",
                                          "a.",
                                          ".a",
                                          "..",
                                          "a\nb",
                                          std::string(250, 'a'),
                                          std::string(251, 'a'),
                                          std::string(199, ' '),
                                          std::string(198, ' ') + "/",
                                          FolderNameOf(std::string(250, 'a'))};
  std::set<std::string> folders;
  for (const std::string& name : names) {
    const std::string folder = FolderNameOf(name);
    EXPECT_TRUE(folders.insert(folder).second) << name;
    EXPECT_EQ(folder.find('/'), std::string::npos);
    EXPECT_TRUE(folder != "." && folder != ".." && !folder.empty());
    EXPECT_NE(folder.front(), '.');
    EXPECT_LE(folder.size(), 200u);
  }
}

}  // namespace
}  // namespace evald
