# The two libraries, shared and static: liblockstep of the modules in src/, liblockstep-tools of those in src/tools, which
# stand on the former (docs/decisions/0022). Every object is compiled once, with visibility "protected" for all but what
# include/lockstep marks LS_API, which is "default". From that cmake/exports.sh makes the lists:
#
#   core.map       public functions of liblockstep in the version LOCKSTEP_0; the internal ones that the tools need in
#                  LOCKSTEP_PRIVATE_<version>, for these tools alone; all others are local
#   tools.map      public functions of liblockstep-tools
#   *.keep         the same for static libraries, whose other symbols are made local
#   private.names  new names in static libraries for what only the tools may use
#
# The Python package (LS_PYTHON) has no tools: its library exports public functions alone.
set(LS_EXPORTS ${CMAKE_BINARY_DIR}/exports)

# ls_modules_in(OUT core|tools): the modules of a library.
function(ls_modules_in out library)
  get_property(modules GLOBAL PROPERTY LS_MODULES)
  set(found "")
  foreach(module ${modules})
    get_property(folder GLOBAL PROPERTY LS_FOLDER_${module})
    if((folder MATCHES "^tools/" AND library STREQUAL "tools") OR (NOT folder MATCHES "^tools/" AND library STREQUAL "core"))
      list(APPEND found ${module})
    endif()
  endforeach()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# ls_module_objects(OUT modules...): their objects, those of each instruction set included.
function(ls_module_objects out)
  set(objects "")
  foreach(module ${ARGN})
    list(APPEND objects $<TARGET_OBJECTS:ls_${module}>)
    foreach(isa ${LS_ISAS})
      if(TARGET ls_${module}_${isa})
        list(APPEND objects $<TARGET_OBJECTS:ls_${module}_${isa}>)
      endif()
    endforeach()
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# ls_module_libs(OUT modules...): the libraries of others that they need.
function(ls_module_libs out)
  set(all "")
  foreach(module ${ARGN})
    get_property(libs GLOBAL PROPERTY LS_LIBS_${module})
    list(APPEND all ${libs})
  endforeach()
  list(REMOVE_DUPLICATES all)
  set(${out} ${all} PARENT_SCOPE)
endfunction()

# ls_exports(): the lists above.
function(ls_exports)
  foreach(library core tools)
    ls_modules_in(modules ${library})
    if(LS_PYTHON AND library STREQUAL "tools")
      set(modules "")
    endif()
    ls_module_objects(objects ${modules})
    list(TRANSFORM modules PREPEND ls_)
    list(APPEND targets ${modules})
    file(GENERATE OUTPUT ${LS_EXPORTS}/${library}.objects CONTENT "$<JOIN:${objects},\n>\n")
  endforeach()
  set(lists core.map tools.map core.keep tools.keep private.names)
  list(TRANSFORM lists PREPEND ${LS_EXPORTS}/)
  add_custom_command(OUTPUT ${lists}
    COMMAND ${CMAKE_SOURCE_DIR}/cmake/exports.sh ${LS_EXPORTS} ${PROJECT_VERSION} ${CMAKE_READELF}
    DEPENDS ${targets} ${CMAKE_SOURCE_DIR}/cmake/exports.sh ${LS_EXPORTS}/core.objects ${LS_EXPORTS}/tools.objects
    COMMENT "Listing exported symbols" VERBATIM)
  add_custom_target(exports DEPENDS ${lists})
endfunction()

# ls_library(TARGET NAME name EXPORT name FROM core|tools [ON library]): one shared library, installed; EXPORT is its name
# for find_package().
function(ls_library target)
  cmake_parse_arguments(LIBRARY "" "NAME;EXPORT;FROM;ON" "" ${ARGN})
  ls_modules_in(modules ${LIBRARY_FROM})
  ls_module_objects(objects ${modules})
  ls_module_libs(libs ${modules})
  add_library(${target} SHARED ${objects})
  add_dependencies(${target} exports)
  target_link_libraries(${target} PUBLIC ${LIBRARY_ON} PRIVATE ${libs})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
  target_link_options(${target} PRIVATE LINKER:--version-script=${LS_EXPORTS}/${LIBRARY_FROM}.map)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${LIBRARY_NAME} LINK_DEPENDS ${LS_EXPORTS}/${LIBRARY_FROM}.map
                        VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN"
                        EXPORT_NAME ${LIBRARY_EXPORT})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  install(TARGETS ${target} EXPORT lockstep-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
          NAMELINK_COMPONENT development)
endfunction()

# ls_static_library(NAME name FROM core|tools LIBS archives...): one object file whose internal symbols are local, so that
# they cannot meet a program's; so are those of the archives, which are linked in.
function(ls_static_library)
  cmake_parse_arguments(LIBRARY "" "NAME;FROM" "LIBS" ${ARGN})
  set(object ${CMAKE_BINARY_DIR}/exports/${LIBRARY_NAME}.o)
  set(archive ${CMAKE_BINARY_DIR}/lib${LIBRARY_NAME}.a)
  ls_modules_in(modules ${LIBRARY_FROM})
  list(TRANSFORM modules PREPEND ls_)
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${object} @${LS_EXPORTS}/${LIBRARY_FROM}.objects ${LIBRARY_LIBS}
    COMMAND ${CMAKE_OBJCOPY} --strip-debug --keep-global-symbols=${LS_EXPORTS}/${LIBRARY_FROM}.keep ${object}
    COMMAND ${CMAKE_OBJCOPY} --redefine-syms=${LS_EXPORTS}/private.names ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND ${CMAKE_AR} rcs ${archive} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${object}
    DEPENDS ${modules} ${LS_EXPORTS}/${LIBRARY_FROM}.keep ${LS_EXPORTS}/private.names
    WORKING_DIRECTORY ${CMAKE_BINARY_DIR} COMMENT "Making lib${LIBRARY_NAME}.a" VERBATIM)
  add_custom_target(${LIBRARY_NAME}_archive ALL DEPENDS ${archive})
  add_dependencies(${LIBRARY_NAME}_archive exports)
  install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
endfunction()

ls_exports()
ls_library(lockstep NAME lockstep EXPORT lockstep FROM core)
if(NOT LS_PYTHON)
  ls_library(lockstep_tools NAME lockstep-tools EXPORT tools FROM tools ON lockstep)
endif()
if(NOT SANITIZER AND NOT LS_PYTHON) # its objects want its run-time library, which a static library cannot bring
  set(LS_STATIC_INSIDE ${LS_XSMM_LIBS})
  list(FILTER LS_STATIC_INSIDE INCLUDE REGEX "\\.a$")
  ls_static_library(NAME lockstep FROM core LIBS ${LS_STATIC_INSIDE})
  ls_static_library(NAME lockstep-tools FROM tools)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/lockstep DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
