# evald_embed(TARGET SYMBOL FILE)   puts FILE's bytes into TARGET as
#     namespace evald { extern const std::string_view SYMBOL; }
# They are assembled in (.incbin), so that a large file costs no compile time.
function(evald_embed target symbol file)
  get_filename_component(path ${file} ABSOLUTE)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.embedded.cc)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
#include <string_view>
__asm__(".pushsection .rodata\n"
        ".global evald_embedded_@symbol@\n.global evald_embedded_@symbol@_end\n"
        "evald_embedded_@symbol@:\n.incbin \"@path@\"\nevald_embedded_@symbol@_end:\n.byte 0\n"
        ".popsection\n");
extern "C" const char evald_embedded_@symbol@[], evald_embedded_@symbol@_end[];
namespace evald {
extern const std::string_view @symbol@;
const std::string_view @symbol@(evald_embedded_@symbol@,
                                static_cast<size_t>(evald_embedded_@symbol@_end - evald_embedded_@symbol@));
}  // namespace evald
]])
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${path} SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
