# cmake -DROOT=<task_code/runtime> -DOUT=<file.cc> -P embed_runtime.cmake
# Writes a C++ source that holds start.py and the modules of evald_task as raw strings.
file(GLOB files RELATIVE ${ROOT} ${ROOT}/start.py ${ROOT}/evald_task/*.py)
list(SORT files)
set(source "// Made by task_code/embed_runtime.cmake.\n#include \"task_code/runtime_files.h\"\n\nnamespace evald::task_code {\n\nconst RuntimeFile kRuntimeFiles[] = {\n")
foreach(file ${files})
  file(READ ${ROOT}/${file} text)
  get_filename_component(name ${file} NAME_WE)
  string(APPEND source "{\"${name}\", R\"EVALDPYTHON(${text})EVALDPYTHON\"},\n")
endforeach()
list(LENGTH files count)
string(APPEND source "};\nconst size_t kRuntimeFileCount = ${count};\n\n}  // namespace evald::task_code\n")
file(WRITE ${OUT} "${source}")
