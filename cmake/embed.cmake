# evald_embed(TARGET SYMBOL FILE)   puts FILE's bytes into TARGET as
#     namespace evald { extern const std::string_view SYMBOL; }
# They are assembled in (.incbin), so that a large file costs no compile time.
set(EVALD_EMBED_FILE ${CMAKE_CURRENT_LIST_DIR}/embed_file.cmake)
function(evald_embed target symbol file)
  get_filename_component(path ${file} ABSOLUTE)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.embedded.cc)
  add_custom_command(OUTPUT ${source} DEPENDS ${path} ${EVALD_EMBED_FILE} VERBATIM
    COMMAND ${CMAKE_COMMAND} -Dsymbol=${symbol} -Dpath=${path} -Dsource=${source} -P ${EVALD_EMBED_FILE})
  set_source_files_properties(${source} PROPERTIES OBJECT_DEPENDS ${path} SKIP_PRECOMPILE_HEADERS ON
                              SKIP_UNITY_BUILD_INCLUSION ON)
  target_sources(${target} PRIVATE ${source})
endfunction()
