# Writes the source file of evald_embed. The hash in it keeps compiler caches, which do not look into
# .incbin, from taking an older file's object for this one's.
file(SHA256 ${path} hash)
file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [[
#include <string_view>
__asm__(".pushsection .rodata  # @hash@\n"
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
