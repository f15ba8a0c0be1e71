#include "datasets/task_imports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> Modules(const std::string& text) {
  std::vector<std::string> modules;
  for (const PythonImport& import : ImportsOf(text)) modules.push_back(import.module);
  return modules;
}

TEST(TaskImports, EveryFormOfAnImportIsRead) {
  EXPECT_THAT(Modules("import re\nimport a.b as c, d  # e\nfrom x.y import (\n    z,\n)\n"),
              ElementsAre("re", "a.b", "d", "x.y"));
  EXPECT_THAT(Modules("def f():\n    import inner\n\ttext = 'import'\nimporting = 1\n"),
              ElementsAre("inner"));
  EXPECT_THAT(Modules("from . import here\nfrom .there import one\nfrom broken\n"), IsEmpty());
}

TEST(TaskImports, ImportsForTypesAloneAreNone) {
  EXPECT_THAT(
      Modules("if TYPE_CHECKING:\n    import types_only\n\n    from t import u\nimport v\n"),
      ElementsAre("v"));
  EXPECT_THAT(Modules("if typing.TYPE_CHECKING:\n    import a\nelse:\n    import b\n"),
              ElementsAre("b"));
}

TEST(TaskImports, PackagesAreFollowedThroughTheFilesOfTasks) {
  const TemporaryFolder scratch;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((scratch.path() / name).parent_path());
    WriteFileAtomic(scratch.path() / name, text);
  };
  write("one/utils.py", "import numpy\nimport near\nfrom lm_eval.tasks.two import far, lost\n");
  write("one/near.py", "import scipy.stats\nimport utils\n");
  write("two/far.py", "import nltk\nimport folder\n");
  write("two/folder/__init__.py", "");
  const TaskModules modules{{scratch.path()}, {}};
  const auto utils = ModuleOf("one/utils.f", modules);
  EXPECT_EQ(utils, scratch.path() / "one/utils.py");
  EXPECT_EQ(ModuleOf(utils.parent_path().string() + "/utils.f", modules), utils);
  EXPECT_EQ(ModuleOf("one/nothing.f", modules), "");
  EXPECT_THAT(PackagesOf(utils, modules), ElementsAre("nltk", "numpy", "scipy"));
}

}  // namespace
}  // namespace evald
