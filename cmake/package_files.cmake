# Run by cpack on the files of the packages, before they are packed: adds what Debian wants in every package, compresses
# manual pages, and removes the library paths that a tree under any other prefix needs.
set(packages_library "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME}")
set(packages_development "${CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME}")
set(packages_command "${CPACK_DEBIAN_COMMAND_PACKAGE_NAME}")

function(compress file)
  execute_process(COMMAND gzip -9n "${file}" COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component ${CPACK_COMPONENTS_ALL})
  set(root "${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}")
  if(NOT IS_DIRECTORY "${root}")
    continue()
  endif()
  set(documents "${root}/share/doc/${packages_${component}}")
  file(MAKE_DIRECTORY "${documents}")
  configure_file("${CPACK_LS_SOURCE_DIR}/LICENSE" "${documents}/copyright" COPYONLY)
  configure_file("${CPACK_LS_SOURCE_DIR}/CHANGELOG.md" "${documents}/NEWS" COPYONLY)
  compress("${documents}/NEWS")
  string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC) # or that of SOURCE_DATE_EPOCH
  file(WRITE "${documents}/changelog" "lockstep (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Lockstep ${CPACK_PACKAGE_VERSION}; NEWS.gz says what has changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
  compress("${documents}/changelog")
  file(GLOB pages "${root}/share/man/man*/*.[0-9]")
  foreach(page ${pages})
    compress("${page}")
  endforeach()
  file(GLOB_RECURSE binaries "${root}/bin/*" "${root}/lib/*.so*")
  foreach(binary ${binaries})
    if(NOT IS_SYMLINK "${binary}")
      file(RPATH_REMOVE FILE "${binary}")
    endif()
  endforeach()
endforeach()
