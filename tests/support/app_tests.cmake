# Groups that run the program in-process (RunShardlab of app/commands.h): they are made of its
# commands' objects.
#
#   include("${PROJECT_SOURCE_DIR}/tests/support/app_tests.cmake")
#   shardlab_add_app_test_group(NAME SOURCE...)
include_guard(GLOBAL)

function(shardlab_add_app_test_group name)
  shardlab_add_test_group(${name} ${ARGN} $<TARGET_OBJECTS:shardlab_commands>)
  target_compile_definitions(${name}_tests PRIVATE SHARDLAB_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${name}_tests PRIVATE Boost::program_options)
endfunction()
