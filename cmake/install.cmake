# What `cmake --install` adds to the library, its headers and the command: the pkg-config file, man pages, completions.
set(LS_PC_XSMM "")
if(LS_XSMM_LIBS)
  set(LS_PC_XSMM "-lxsmm -lxsmmnoblas -ldl")
endif()
set(LS_PC_MPI "")
if(LS_MPI_LIBS)
  set(LS_PC_MPI "-lmpi")
endif()
# The pkg-config file finds its prefix from its own place, so that an installed tree may be moved.
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
