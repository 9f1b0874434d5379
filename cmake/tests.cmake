# Unit tests: tests/unit/<module>/test_*.c, each an executable on cmocka that links its module and sees what the module sees, directly or not.
# A graph or a model is tested by running it, the trainer and the profiler with models of the table.
set(LS_TESTS_OF_graph_USE backends)
set(LS_TESTS_OF_models_USE backends)
set(LS_TESTS_OF_backends_USE models)
set(LS_TESTS_OF_trainer_USE models)
set(LS_TEST_DIR ${CMAKE_BINARY_DIR}/tests)
# A test's own malloc, or its options of a sanitizer, must be seen by the libraries it loads.
set(LS_TEST_PROPERTIES C_VISIBILITY_PRESET default)
get_property(modules GLOBAL PROPERTY LS_MODULES)
ls_module_includes(LS_ALL_INCLUDES ${modules})

# What tests share: tests/support/*.c, included as "support/NAME.h". It may use any module; a test links the modules its
# objects need.
file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.c)
add_library(ls_test_support STATIC ${support})
target_include_directories(ls_test_support PRIVATE ${CMAKE_SOURCE_DIR}/tests ${LS_ALL_INCLUDES})

foreach(module ${modules})
  get_property(folder GLOBAL PROPERTY LS_FOLDER_${module})
  ls_module_closure(below ${module} ${LS_TESTS_OF_${module}_USE})
  ls_module_includes(includes ${below})
  file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/unit/${folder}/test_*.c)
  foreach(source ${tests})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_BINARY_DIR}/modules/cli ${includes})
    target_compile_definitions(${name} PRIVATE LS_GOLDEN_DIR="${CMAKE_SOURCE_DIR}/tests/golden")
    target_link_libraries(${name} PRIVATE ls_test_support ls_${module} PkgConfig::CMOCKA)
    foreach(more ${LS_TESTS_OF_${module}_USE})
      target_link_libraries(${name} PRIVATE ls_${more})
    endforeach()
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${LS_TEST_DIR}/unit ${LS_TEST_PROPERTIES})
  endforeach()
endforeach()

# Programs that run as several nodes: tests/ranks/*.c, started under mpirun by the scripts beside them.
file(GLOB programs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/ranks/*.c)
foreach(source ${programs})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ls_cluster ls_run ls_bench)
  target_include_directories(${name} PRIVATE ${LS_ALL_INCLUDES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${LS_TEST_DIR}/ranks ${LS_TEST_PROPERTIES})
endforeach()

# Programs that scripts in tests/golden compare with others' results.
add_executable(wordpiece_lines ${CMAKE_SOURCE_DIR}/tests/golden/wordpiece_lines.c)
target_link_libraries(wordpiece_lines PRIVATE ls_tokenizer)
add_executable(text_dump ${CMAKE_SOURCE_DIR}/tests/golden/text_dump.c)
target_link_libraries(text_dump PRIVATE ls_models ls_backends ls_data ls_checkpoint)
target_include_directories(wordpiece_lines PRIVATE ${LS_ALL_INCLUDES})
target_include_directories(text_dump PRIVATE ${LS_ALL_INCLUDES})
set_target_properties(wordpiece_lines text_dump PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${LS_TEST_DIR}/golden)
