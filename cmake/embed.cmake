# ls_embed(MODULE name FILES files... HEADER header TYPE type ARRAY array): files as an array of { name, text, bytes } in
# a C source of the module, so that an installed command has them. Made when the build is configured, which a changed file
# triggers again.
function(ls_embed)
  cmake_parse_arguments(EMBED "" "MODULE;HEADER;TYPE;ARRAY" "FILES" ${ARGN})
  list(SORT EMBED_FILES)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${EMBED_FILES})
  set(EMBED_TEXTS "")
  set(EMBED_ROWS "")
  foreach(path ${EMBED_FILES})
    get_filename_component(name ${path} NAME_WE)
    string(MAKE_C_IDENTIFIER ${name} id)
    file(READ ${path} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
           bytes "${bytes}")
    string(APPEND EMBED_TEXTS "static const unsigned char text_${id}[] = {\n${bytes}0\n};\n")
    string(APPEND EMBED_ROWS "\t{ \"${name}\", (const char *)text_${id}, sizeof(text_${id}) - 1 },\n")
  endforeach()
  set(source ${CMAKE_BINARY_DIR}/${EMBED_ARRAY}.c)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/embed.c.in ${source} @ONLY)
  set_property(GLOBAL APPEND PROPERTY LS_MADE_${EMBED_MODULE} ${source})
endfunction()
