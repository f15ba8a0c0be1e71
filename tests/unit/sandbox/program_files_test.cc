// What is made of a program's texts before anything runs.

#include "metrics/sandbox/program_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evald::sandbox {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

TEST(JavaClasses, TheOutermostClassAroundMainIsRun) {
  const JavaClasses found = FindJavaClasses(
      "package a.b;\nimport java.util.*;\n"
      "// class Commented { public static void main(String[] a) {} }\n"
      "/* public class Hidden */\n"
      "class Helper { String s = \"public class Quoted {\"; char c = '{'; }\n"
      "public final class Main {\n"
      "  static class Node { int x; }\n"
      "  public static void main(String[] args) { }\n}\n");
  EXPECT_EQ(found.package, "a.b");
  EXPECT_EQ(found.public_class, "Main");
  EXPECT_EQ(found.main_class, "Main");
}

TEST(JavaClasses, AProgramNeedsNoPublicClass) {
  const JavaClasses found = FindJavaClasses(
      "class Problem { static int f() { return 1; }\n"
      "  public static void main(final String... a) { assert f() == 1; } }\n");
  EXPECT_EQ(found.public_class, "");
  EXPECT_EQ(found.main_class, "Problem");
  EXPECT_EQ(FindJavaClasses("").main_class, "");
  EXPECT_EQ(FindJavaClasses("class A { String s = \"\"\"\n\" } \"\"\"; static void main() {} }")
                .main_class,
            "A");
}

TEST(ProgramPlans, JavaFilesAreNamedByTheirPublicClass) {
  const ProgramPlan plan = PlanProgram(
      *FindLanguage("java"), {{"", "public class Sum { public static void main(String[] a) {} }"}},
      "", 512ull << 20);
  EXPECT_EQ(plan.files[0].path, "Sum.java");
  EXPECT_THAT(plan.build, Contains("./Sum.java"));
  EXPECT_THAT(plan.run, Contains("-Xmx512m"));
  EXPECT_EQ(plan.run.back(), "Sum");
}

TEST(ProgramPlans, GoFilesWithoutMainAreTests) {
  EXPECT_TRUE(HasGoMain("package main\n\nfunc main() {}\n"));
  EXPECT_FALSE(HasGoMain("package x_test\nfunc mainly() {}\n// func main()\n"));
  const Language& go = *FindLanguage("go");
  EXPECT_THAT(PlanProgram(go, {{"", "package x_test\n"}}, "", 1 << 30).build,
              ElementsAre("/usr/bin/go", "test", "-c", "-vet=off", "-o", "main", "./main_test.go"));
  EXPECT_THAT(PlanProgram(go, {{"", "package main\nfunc main() {}\n"}}, "", 1 << 30).build,
              ElementsAre("/usr/bin/go", "build", "-o", "main", "./main.go"));
}

TEST(ProgramPlans, SourcesAreTheFilesOfTheLanguage) {
  const ProgramPlan plan =
      PlanProgram(*FindLanguage("cpp"),
                  {{"", "int main() {}"}, {"a.h", ""}, {"b.cc", ""}, {"c.txt", ""}}, "", 1 << 30);
  EXPECT_THAT(plan.build, ElementsAre("/usr/bin/g++", "-std=gnu++17", "-O2", "-w", "-o", "main",
                                      "./main.cpp", "./b.cc"));
}

TEST(ProgramPlans, PythonIsTheSandboxs) {
  const ProgramPlan plan = PlanProgram(*FindLanguage("python"), {{"", ""}}, "/opt/python", 1 << 30);
  EXPECT_EQ(plan.run[0], "/opt/python");
  EXPECT_TRUE(plan.build.empty());
}

}  // namespace
}  // namespace evald::sandbox
