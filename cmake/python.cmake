# The Python package (python/, docs/python.md): scikit-build-core configures the tree with LS_PYTHON=ON, builds the target
# python_package and installs the component "python" into the wheel. The modules that python/lockstep does not have are
# generated from the headers and the library.
if(NOT LS_PYTHON)
  return()
endif()

find_package(Python 3.9 REQUIRED COMPONENTS Interpreter)
set(LS_PYTHON_MADE ${CMAKE_BINARY_DIR}/python_made)
set(modules _binding.py _operators.py _settings.py)
list(TRANSFORM modules PREPEND ${LS_PYTHON_MADE}/)
file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/lockstep/*.h)
add_custom_command(OUTPUT ${modules}
  COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER} ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/python/tools/make_binding.py
          --include ${CMAKE_SOURCE_DIR}/include --library $<TARGET_FILE:lockstep> --out ${LS_PYTHON_MADE}
  DEPENDS lockstep ${headers} ${CMAKE_SOURCE_DIR}/python/tools/make_binding.py ${CMAKE_SOURCE_DIR}/docs/operators.md
  COMMENT "Making the Python binding" VERBATIM)
add_custom_target(python_package DEPENDS ${modules} lockstep)
install(FILES ${modules} DESTINATION lockstep COMPONENT python)
install(FILES $<TARGET_FILE:lockstep> DESTINATION lockstep RENAME liblockstep.so COMPONENT python)
