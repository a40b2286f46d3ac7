# ShardlabFloors: the floors of framework/, one target each.
#
#   shardlab_add_floor(base OBJECT)     all of framework/base/**.cpp as the target shardlab_base
#   shardlab_add_floor(core STATIC)     ... as a static library
#
# Sources are found by themselves (a new file needs no edit here) and a floor without sources yet is
# an empty library, so that a half-built house still configures. Headers are included by their path
# from framework/ ("base/units.h"). That includes go down only is checked by tests/floors.
#
# OBJECT floors become part of the one shared library that plugins link; it may not be replaced
# symbol by symbol at run time, hence -fno-semantic-interposition (calls inside it are inlined).

function(shardlab_add_floor floor type)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/framework/${floor}/*.cpp"
       "${PROJECT_SOURCE_DIR}/framework/${floor}/*.h")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  set(compiled ${sources})
  list(FILTER compiled INCLUDE REGEX "\\.cpp$")
  if(NOT compiled)
    set(empty "${PROJECT_BINARY_DIR}/empty_${floor}.cpp")
    file(CONFIGURE OUTPUT "${empty}" CONTENT "// The floor ${floor} has no sources yet.\n")
    list(APPEND sources "${empty}")
  endif()

  add_library(shardlab_${floor} ${type} ${sources})
  target_include_directories(shardlab_${floor}
                             PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/framework>")
  target_compile_definitions(shardlab_${floor} PRIVATE SHARDLAB_VERSION="${PROJECT_VERSION}")
  if(type STREQUAL "OBJECT")
    set_target_properties(shardlab_${floor} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_compile_options(shardlab_${floor} PRIVATE -fno-semantic-interposition)
    target_link_libraries(shardlab_${floor} PRIVATE ${SHARDLAB_ABSL})
  endif()
endfunction()
