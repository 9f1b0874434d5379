# What `cmake --install` adds to the libraries, their headers and the command: pkg-config files, a CMake package, man
# pages, completions. There are three components, the packages of cmake/packages.cmake: library, development, command.
#
# A shared library knows what it needs, so a program that uses it gets neither the flags of jansson, utf8proc and the
# rest, nor a need for their headers; they stand where only static linking looks. The pkg-config files and the CMake
# package find their prefix from their own place, so that an installed tree may be moved.
include(CMakePackageConfigHelpers)

set(LS_NEEDS ${JANSSON_LIBRARIES} ${ZLIB_LIBRARIES} ${CURL_LIBRARIES} ${XXHASH_LIBRARIES} ${HWLOC_LIBRARIES}
    ${UTF8PROC_LIBRARIES} ${PNG_LIBRARIES} ${JPEG_LIBRARIES} ${HTTPD_LIBRARIES} ${MPI_C_LIBRARIES} pthread ${CMAKE_DL_LIBS} m)
list(REMOVE_DUPLICATES LS_NEEDS)
set(LS_NEEDS_FLAGS "")
foreach(library ${LS_NEEDS})
  if(library MATCHES "^(/.*)/lib([^/]+)\\.so$")
    string(APPEND LS_NEEDS_FLAGS " -L${CMAKE_MATCH_1} -l${CMAKE_MATCH_2}")
  else()
    string(APPEND LS_NEEDS_FLAGS " -l${library}")
  endif()
endforeach()
string(STRIP "${LS_NEEDS_FLAGS}" LS_NEEDS_FLAGS)

file(RELATIVE_PATH LS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(name lockstep lockstep-tools)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()

set(LS_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
configure_file(${CMAKE_SOURCE_DIR}/cmake/lockstep-config.cmake.in ${CMAKE_BINARY_DIR}/lockstep-config.cmake @ONLY)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/lockstep-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/lockstep-config.cmake ${CMAKE_BINARY_DIR}/lockstep-config-version.cmake
        DESTINATION ${LS_PACKAGE_DIR} COMPONENT development)
install(EXPORT lockstep-targets NAMESPACE lockstep:: DESTINATION ${LS_PACKAGE_DIR} COMPONENT development)

# What `lockstep bench` rehearses several nodes with.
install(PROGRAMS ${CMAKE_SOURCE_DIR}/tools/lab DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/lockstep COMPONENT command)

file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.1)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)

if(EXISTS ${CMAKE_SOURCE_DIR}/completions/lockstep.bash)
  install(FILES ${CMAKE_SOURCE_DIR}/completions/lockstep.bash COMPONENT command
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME lockstep)
endif()

file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c)
install(FILES ${examples} DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/examples COMPONENT development)

# The loader finds a library in /usr/local once its cache knows it; only root can tell it, and not for another root.
install(CODE [[
  find_program(ldconfig ldconfig PATHS /sbin /usr/sbin)
  execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(ldconfig AND user STREQUAL "0" AND "$ENV{DESTDIR}" STREQUAL "")
    execute_process(COMMAND ${ldconfig})
  endif()
]] COMPONENT library)
