# tests/fuzz/fuzz_<module>_<noun>.c defines LLVMFuzzerTestOneInput. With clang it becomes a libFuzzer program; with gcc it
# gets the driver in tests/fuzz/standalone.c, which takes the same options. Either way it is linked with its module, and
# the modules below, compiled once more under AddressSanitizer and UndefinedBehaviorSanitizer.
include(CheckCSourceCompiles)

if(SANITIZER STREQUAL "thread")
  return() # parsers are tested by one thread, and the sanitizers exclude each other
endif()

set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
check_c_source_compiles("int LLVMFuzzerTestOneInput(const char *d, unsigned long n); int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }" LS_HAVE_LIBFUZZER)
unset(CMAKE_REQUIRED_FLAGS)

set(LS_FUZZ_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1)
set(LS_FUZZ_LINK ${LS_FUZZ_FLAGS})
if(LS_HAVE_LIBFUZZER)
  list(APPEND LS_FUZZ_FLAGS -fsanitize=fuzzer-no-link)
  list(APPEND LS_FUZZ_LINK -fsanitize=fuzzer)
endif()

add_custom_target(fuzz)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_*_*.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "^fuzz_([a-z]+)_.*$" "\\1" module ${name})
  ls_module_build(${module} fuzz_ ${LS_FUZZ_FLAGS})
  ls_module_closure(below ${module})
  ls_module_includes(includes ${below})
  add_executable(${name} ${source})
  if(NOT LS_HAVE_LIBFUZZER)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/fuzz/standalone.c)
  endif()
  target_compile_options(${name} PRIVATE ${LS_FUZZ_FLAGS} -Wno-missing-prototypes)
  target_link_options(${name} PRIVATE ${LS_FUZZ_LINK})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${includes})
  target_link_libraries(${name} PRIVATE ls_fuzz_${module})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${LS_TEST_DIR}/fuzz ${LS_TEST_PROPERTIES})
  add_dependencies(fuzz ${name})
endforeach()
