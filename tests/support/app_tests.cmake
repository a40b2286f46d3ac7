# Groups that run the program in-process (RunShardlab of app/commands.h): no library holds the
# application, so its sources, without main(), are compiled once for all of them.
#
#   include("${PROJECT_SOURCE_DIR}/tests/support/app_tests.cmake")
#   shardlab_add_app_test_group(NAME SOURCE...)
include_guard(GLOBAL)

file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/framework/app/*.cpp")
list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
add_library(shardlab_app_in_tests OBJECT ${sources})
target_compile_definitions(shardlab_app_in_tests PRIVATE SHARDLAB_VERSION="${PROJECT_VERSION}")
target_link_libraries(shardlab_app_in_tests PUBLIC shardlab_io nlohmann_json::nlohmann_json
                                                   Boost::program_options)

function(shardlab_add_app_test_group name)
  shardlab_add_test_group(${name} ${ARGN} $<TARGET_OBJECTS:shardlab_app_in_tests>)
  target_compile_definitions(${name}_tests PRIVATE SHARDLAB_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name}_tests PRIVATE Boost::program_options)
endfunction()
