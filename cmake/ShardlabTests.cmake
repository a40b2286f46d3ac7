# ShardlabTests: tests, benchmarks and fuzz targets, found by themselves.
#
# Every folder below tests/ with a *_test.cpp is one GoogleTest executable: tests/laws becomes
# laws_tests, tests/unit/base becomes unit_base_tests (in <build>/tests), made of all *.cpp of that
# folder (not of its subfolders). All plugins/**/*_test.cpp form plugins_tests. A folder tests/NAME
# with its own CMakeLists.txt is add_subdirectory'd instead; it may call shardlab_add_test_group itself.
# tests/support/*.cpp (no tests in it) is a library that the groups link. tests/plugins holds
# test-only plugins, built like the real ones into <build>/test-plugins. tests/fuzz/*_fuzz.cpp are
# libFuzzer targets, one executable each in <build>/fuzz (preset fuzz only); every build replays their
# seeds, tests/fuzz/corpus/<target>, as the test fuzz/<target>.
# bench/*.cpp form <build>/bench/shardlab_bench.
#
#   shardlab_add_test_group(NAME SOURCE...)    the executable NAME_tests, registered with ctest as
#                                              NAME/Suite.Test, label NAME
#
# A test sees the strings SHARDLAB_SOURCE_DIR and SHARDLAB_BINARY_DIR, includes "support/..." and,
# when ctest runs it, has SHARDLAB_PLUGIN_PATH=<build>/plugins in its environment and <build> as its
# working directory. ctest lists the tests of an executable *without* that environment (and again
# when the set of plugins changes), so a suite that is instantiated for every plugin finds them by
# SHARDLAB_BINARY_DIR "/plugins". Building a group builds no plugins: build all, or the target
# shardlab_plugins too.
#
# The groups base, domain and api link the shared library alone, core the core floor too, all others
# every floor below app: so a lower floor can be tested while a higher one does not compile.

set(SHARDLAB_TEST_DEFINITIONS SHARDLAB_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                              SHARDLAB_BINARY_DIR="${PROJECT_BINARY_DIR}")

function(shardlab_add_test_group name)
  add_executable(${name}_tests ${ARGN})
  target_compile_definitions(${name}_tests PRIVATE ${SHARDLAB_TEST_DEFINITIONS})
  target_include_directories(${name}_tests PRIVATE "${PROJECT_SOURCE_DIR}/tests"
                                                   "${PROJECT_SOURCE_DIR}/framework")
  if(NOT name MATCHES "^(unit_)?(base|domain|api)$")
    if(TARGET shardlab_test_support AND NOT name MATCHES "^(unit_)?core$")
      target_link_libraries(${name}_tests PRIVATE shardlab_test_support)
    endif()
    if(NOT name MATCHES "^(unit_)?core$")
      target_link_libraries(${name}_tests PRIVATE shardlab_io)
    endif()
    target_link_libraries(${name}_tests PRIVATE shardlab_core)
  endif()
  target_link_libraries(${name}_tests PRIVATE shardlab GTest::gtest_main GTest::gmock
                                              nlohmann_json::nlohmann_json Threads::Threads)
  set_target_properties(${name}_tests PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                 "${PROJECT_BINARY_DIR}/tests")
  # A relink makes ctest list the tests again.
  set_property(TARGET ${name}_tests APPEND PROPERTY LINK_DEPENDS "${SHARDLAB_PLUGIN_LIST}")
  gtest_discover_tests(
    ${name}_tests
    TEST_PREFIX "${name}/"
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120
    NO_PRETTY_VALUES
    WORKING_DIRECTORY "${PROJECT_BINARY_DIR}"
    PROPERTIES ENVIRONMENT "SHARDLAB_PLUGIN_PATH=${PROJECT_BINARY_DIR}/plugins" LABELS "${name}"
               TIMEOUT 900)
endfunction()

function(shardlab_add_tests)
  set(SHARDLAB_PLUGIN_GROUP shardlab_test_plugins)
  file(GLOB folders CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/plugins/*")
  foreach(folder IN LISTS folders)
    if(IS_DIRECTORY "${folder}")
      shardlab_add_plugin_folder("${folder}" NO_INSTALL OUTPUT_DIRECTORY
                                 "${PROJECT_BINARY_DIR}/test-plugins")
    endif()
  endforeach()

  file(GLOB support CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/support/*.cpp")
  if(support)
    add_library(shardlab_test_support STATIC ${support})
    target_compile_definitions(shardlab_test_support PRIVATE ${SHARDLAB_TEST_DEFINITIONS})
    target_include_directories(shardlab_test_support PUBLIC "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(
      shardlab_test_support PUBLIC shardlab_io shardlab_core shardlab GTest::gtest GTest::gmock
                                   nlohmann_json::nlohmann_json)
  endif()

  file(GLOB_RECURSE files CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
       "${PROJECT_SOURCE_DIR}/tests/*_test.cpp")
  file(GLOB own CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/tests"
       "${PROJECT_SOURCE_DIR}/tests/*/CMakeLists.txt")
  list(APPEND files ${own})
  list(FILTER files EXCLUDE REGEX "^(plugins|fuzz|support)/")
  set(groups)
  foreach(file IN LISTS files)
    get_filename_component(group "${file}" DIRECTORY)
    list(APPEND groups "${group}")
  endforeach()
  list(REMOVE_DUPLICATES groups)
  foreach(group IN LISTS groups)
    set(folder "${PROJECT_SOURCE_DIR}/tests/${group}")
    if("${group}/CMakeLists.txt" IN_LIST files)
      add_subdirectory("${folder}" "${PROJECT_BINARY_DIR}/tests/${group}")
    elseif(group)
      file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
      string(MAKE_C_IDENTIFIER "${group}" name)
      shardlab_add_test_group(${name} ${sources})
    endif()
  endforeach()

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/plugins/*_test.cpp")
  if(sources)
    shardlab_add_test_group(plugins ${sources})
  endif()
endfunction()

function(shardlab_add_fuzz_replays)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(${name}_replay "${source}" "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp")
    target_compile_definitions(${name}_replay PRIVATE ${SHARDLAB_TEST_DEFINITIONS})
    target_link_libraries(${name}_replay PRIVATE shardlab_io shardlab_core shardlab)
    set_target_properties(${name}_replay PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                    "${PROJECT_BINARY_DIR}/tests")
    add_test(NAME fuzz/${name} COMMAND ${name}_replay
                                       "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    # An input that hangs is a failure.
    set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT 120)
  endforeach()
endfunction()

function(shardlab_add_benchmarks)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp")
  if(NOT sources)
    return()
  endif()
  add_executable(shardlab_bench ${sources})
  target_compile_definitions(shardlab_bench PRIVATE ${SHARDLAB_TEST_DEFINITIONS})
  target_link_libraries(shardlab_bench PRIVATE shardlab_io shardlab_core shardlab
                                               benchmark::benchmark_main benchmark::benchmark)
  set_target_properties(shardlab_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                  "${PROJECT_BINARY_DIR}/bench")
  # A plain loop, whose instructions callgrind counts the same each time.
  add_executable(shardlab_instructions "${PROJECT_SOURCE_DIR}/bench/instructions/instructions.cpp")
  target_compile_definitions(shardlab_instructions PRIVATE ${SHARDLAB_TEST_DEFINITIONS})
  target_include_directories(shardlab_instructions PRIVATE "${PROJECT_SOURCE_DIR}/bench")
  target_link_libraries(shardlab_instructions PRIVATE shardlab_io shardlab_core shardlab)
  set_target_properties(shardlab_instructions PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                         "${PROJECT_BINARY_DIR}/bench")
endfunction()

function(shardlab_add_fuzz_targets)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/fuzz/*_fuzz.cpp")
  foreach(source IN LISTS sources)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(${name} "${source}")
    target_compile_definitions(${name} PRIVATE ${SHARDLAB_TEST_DEFINITIONS})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
    target_link_libraries(${name} PRIVATE shardlab_io shardlab_core shardlab)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
  endforeach()
endfunction()
