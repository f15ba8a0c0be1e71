#include "datasets/task_imports.h"

#include <algorithm>

#include "base/text.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kModuleBytesMax = 4u << 20;
constexpr size_t kModulesMax = 200;
constexpr std::string_view kTasksPackage = "lm_eval.tasks.";

size_t IndentOf(std::string_view line) {
  const size_t at = line.find_first_not_of(" \t");
  return at == std::string_view::npos ? line.size() : at;
}

// "numpy.random as r" -> "numpy.random"; "" if it begins with no name.
std::string NameIn(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  return std::string(
      trimmed.substr(0, trimmed.find_first_not_of(
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.")));
}

std::vector<std::string> NamesIn(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string& part : Split(list.substr(0, list.find('#')), ',')) {
    const size_t begin = part.find_first_not_of(" (");
    if (begin == std::string::npos) continue;
    std::string name = NameIn(std::string_view(part).substr(begin));
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

void AddImports(std::string_view code, std::vector<PythonImport>* imports) {
  constexpr std::string_view kFrom = "from ", kImport = "import ", kBetween = " import ";
  if (code.starts_with(kFrom)) {
    const size_t between = code.find(kBetween);
    const std::string module = NameIn(code.substr(kFrom.size()));
    if (between == std::string_view::npos || module.empty() || module[0] == '.') return;
    imports->push_back({module, NamesIn(code.substr(between + kBetween.size()))});
  } else if (code.starts_with(kImport)) {
    for (std::string& module : NamesIn(code.substr(kImport.size())))
      imports->push_back({std::move(module), {}});
  }
}

std::string FirstPart(const std::string& module) { return module.substr(0, module.find('.')); }

// "a.b" as "a/b".
std::string AsPath(std::string module) {
  std::replace(module.begin(), module.end(), '.', '/');
  return module;
}

// The files of tasks that an import of lm_eval.tasks may mean.
std::vector<fs::path> FilesOfTasks(const PythonImport& import, const TaskModules& modules) {
  std::vector<fs::path> files;
  if (!import.module.starts_with(kTasksPackage)) return files;
  const std::string inside = AsPath(import.module.substr(kTasksPackage.size()));
  for (const fs::path& folder : modules.folders) {
    files.push_back(folder / (inside + ".py"));
    for (const std::string& name : import.names) files.push_back(folder / inside / (name + ".py"));
  }
  std::erase_if(files, [&](const fs::path& file) { return !modules.roots.HasFile(file); });
  return files;
}

}  // namespace

std::vector<PythonImport> ImportsOf(std::string_view text) {
  std::vector<PythonImport> imports;
  bool for_types = false;
  size_t types_indent = 0;
  for (const std::string& line : Split(text, '\n')) {
    const std::string_view code = Trim(line);
    if (code.empty()) continue;
    const size_t indent = IndentOf(line);
    if (for_types && indent > types_indent) continue;
    for_types = code.starts_with("if ") && code.find("TYPE_CHECKING") != std::string_view::npos;
    types_indent = indent;
    if (!for_types) AddImports(code, &imports);
  }
  return imports;
}

fs::path ModuleOf(const std::string& function, const TaskModules& modules) {
  const std::string module = function.substr(0, function.rfind('.')) + ".py";
  if (module.starts_with('/')) return modules.roots.HasFile(module) ? fs::path(module) : "";
  for (const fs::path& folder : modules.folders) {
    if (modules.roots.HasFile(folder / module)) return folder / module;
  }
  return {};
}

std::set<std::string> PackagesOf(const fs::path& module, const TaskModules& modules) {
  std::set<std::string> packages;
  std::set<fs::path> seen = {module};
  std::vector<fs::path> open = {module};
  while (!open.empty() && seen.size() <= kModulesMax) {
    const fs::path file = open.back();
    open.pop_back();
    for (const PythonImport& import : ImportsOf(modules.roots.Read(file, kModuleBytesMax))) {
      std::vector<fs::path> files = FilesOfTasks(import, modules);
      const std::string first = FirstPart(import.module);
      const fs::path beside = file.parent_path() / (first + ".py");
      if (modules.roots.HasFile(beside)) files.push_back(beside);
      if (files.empty() && !modules.roots.HasFolder(file.parent_path() / first))
        packages.insert(first);
      for (fs::path& other : files) {
        if (seen.insert(other).second) open.push_back(std::move(other));
      }
    }
  }
  return packages;
}

}  // namespace evald
