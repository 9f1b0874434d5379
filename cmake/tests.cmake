# Unit tests: tests/unit/<room>/test_*.c, each an executable on cmocka that links its room (and so what the room uses).
set(LS_TEST_DIR ${CMAKE_BINARY_DIR}/tests)
# A test's own malloc, or its options of a sanitizer, must be seen by the libraries it loads.
set(LS_TEST_PROPERTIES C_VISIBILITY_PRESET default)
foreach(room base json tensor text data kernels optim exchange ckpt metrics graph models launch train probe results sweep
        plan report)
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${room}/test_*.c)
  foreach(source ${tests})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_compile_definitions(${name} PRIVATE LS_GOLDEN_DIR="${CMAKE_SOURCE_DIR}/tests/golden")
    target_link_libraries(${name} PRIVATE ls_${room} PkgConfig::CMOCKA)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${LS_TEST_DIR}/unit ${LS_TEST_PROPERTIES})
  endforeach()
endforeach()

# Programs that run as several nodes: tests/ranks/*.c, started under mpirun by the scripts beside them.
file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/ranks/*.c)
foreach(source ${programs})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ls_launch ls_train)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${LS_TEST_DIR}/ranks ${LS_TEST_PROPERTIES})
endforeach()

# Programs that scripts in tests/golden compare with others' results.
add_executable(wordpiece_lines ${CMAKE_SOURCE_DIR}/tests/golden/wordpiece_lines.c)
target_link_libraries(wordpiece_lines PRIVATE ls_text)
add_executable(text_dump ${CMAKE_SOURCE_DIR}/tests/golden/text_dump.c)
target_link_libraries(text_dump PRIVATE ls_models ls_data ls_ckpt)
set_target_properties(wordpiece_lines text_dump PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${LS_TEST_DIR}/golden)
