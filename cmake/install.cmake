# What `cmake --install` adds to the library, its headers and the command: the pkg-config file, man pages, completions.
# The library is a shared one and knows what it needs, so the pkg-config file names nothing else: a program that uses it
# gets neither the flags of jansson, utf8proc and the rest, nor a need for their headers.
# It finds its prefix from its own place, so that an installed tree may be moved.
file(RELATIVE_PATH LS_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/lockstep.pc.in ${CMAKE_BINARY_DIR}/lockstep.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/lockstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What `lockstep bench` rehearses several nodes with.
install(PROGRAMS ${CMAKE_SOURCE_DIR}/tools/lab DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/lockstep)

file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*.1)
install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

if(EXISTS ${CMAKE_SOURCE_DIR}/completions/lockstep.bash)
  install(FILES ${CMAKE_SOURCE_DIR}/completions/lockstep.bash
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME lockstep)
endif()

file(GLOB examples CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/examples/*.c)
install(FILES ${examples} DESTINATION ${CMAKE_INSTALL_DATADIR}/lockstep/examples)

# The loader finds a library in /usr/local/lib once its cache knows it; only root can tell it, and not for another root.
install(CODE [[
  find_program(ldconfig ldconfig PATHS /sbin /usr/sbin)
  execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(ldconfig AND user STREQUAL "0" AND "$ENV{DESTDIR}" STREQUAL "")
    execute_process(COMMAND ${ldconfig})
  endif()
]])
