# ShardlabPlugin: building plugins, inside this repository and outside of it.
#
# Outside (a whole CMakeLists.txt):
#
#   cmake_minimum_required(VERSION 3.25)
#   project(my_plugin CXX)
#   find_package(shardlab 0.1 CONFIG REQUIRED)
#   shardlab_add_plugin(my-plugin my_plugin.cpp)
#
# gives build/plugins/my-plugin/my-plugin.so with the folder's data beside it; then
# `shardlab --plugins build/plugins ...` finds it, and `cmake --install` puts it where an installed
# shardlab of the same prefix looks.
#
#   shardlab_add_plugin(NAME SOURCE... [ALLOW_UNDEFINED] [NO_INSTALL] [OUTPUT_DIRECTORY DIR])
#       a code plugin: the target plugin_NAME, a module library linked to shardlab::shardlab, hidden
#       visibility, no symbol left undefined (ALLOW_UNDEFINED: for tests of bad plugins). Output:
#       DIR/NAME/NAME.so, where DIR is <build>/plugins unless given.
#   shardlab_add_data_plugin(NAME FOLDER [NO_INSTALL] [OUTPUT_DIRECTORY DIR])
#       a plugin without code: its data alone.
#   shardlab_add_plugin_folder(FOLDER [NO_INSTALL] [OUTPUT_DIRECTORY DIR])
#       one folder, by what is in it: its own CMakeLists.txt, or <folder>.cpp (with _ for -) and the
#       other *.cpp but tests, or *.toml alone. Sets SHARDLAB_FOLDER_IS_PLUGIN for the caller.
#
# Data of a plugin: *.toml, *.csv and README.md of its folder, and presets/ with all below. It is
# copied at build time, again whenever a file changes, and what was removed from the folder is
# removed from the copy. The targets shardlab_plugins (or what SHARDLAB_PLUGIN_GROUP says) collect
# all of them.
#
# Run as a script (cmake -D TO=.. -D FROM=.. -D KEEP=.. -D LIST=.. -P this file) it does that copy.

if(CMAKE_SCRIPT_MODE_FILE AND CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  cmake_minimum_required(VERSION 3.25)
  file(STRINGS "${LIST}" files)
  file(GLOB_RECURSE old RELATIVE "${TO}" "${TO}/*")
  foreach(file IN LISTS old)
    if(NOT file IN_LIST files AND NOT file STREQUAL KEEP)
      file(REMOVE "${TO}/${file}")
    endif()
  endforeach()
  foreach(file IN LISTS files)
    get_filename_component(folder "${TO}/${file}" DIRECTORY)
    file(COPY "${FROM}/${file}" DESTINATION "${folder}")
  endforeach()
  return()
endif()

set(SHARDLAB_PLUGIN_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
set(SHARDLAB_PLUGIN_INSTALL_DIR "lib/shardlab/plugins")
if(NOT DEFINED SHARDLAB_PLUGIN_GROUP)
  set(SHARDLAB_PLUGIN_GROUP shardlab_plugins)
endif()
if(NOT DEFINED SHARDLAB_NO_UNDEFINED)
  set(SHARDLAB_NO_UNDEFINED "-Wl,-z,defs")
endif()

# The data files of FOLDER, relative to it, in VARIABLE.
function(_shardlab_plugin_data variable folder)
  file(GLOB top CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/*.toml" "${folder}/*.csv"
       "${folder}/README.md")
  file(GLOB_RECURSE presets CONFIGURE_DEPENDS RELATIVE "${folder}" "${folder}/presets/*")
  set(${variable} ${top} ${presets} PARENT_SCOPE)
endfunction()

function(_shardlab_plugin_common name folder output install keep)
  if(NOT TARGET ${SHARDLAB_PLUGIN_GROUP})
    add_custom_target(${SHARDLAB_PLUGIN_GROUP} ALL)
  endif()

  get_property(taken GLOBAL PROPERTY "SHARDLAB_PLUGIN_${output}/${name}")
  if(taken)
    message(FATAL_ERROR "two plugins are called '${name}': ${taken} and ${folder}")
  endif()
  set_property(GLOBAL PROPERTY "SHARDLAB_PLUGIN_${output}/${name}" "${folder}")

  _shardlab_plugin_data(files "${folder}")
  set(stem "${CMAKE_BINARY_DIR}/plugin-data/${SHARDLAB_PLUGIN_GROUP}/${name}")
  list(JOIN files "\n" lines)
  file(CONFIGURE OUTPUT "${stem}.list" CONTENT "${lines}\n" @ONLY)
  set(inputs ${files})
  list(TRANSFORM inputs PREPEND "${folder}/")
  add_custom_command(
    OUTPUT "${stem}.stamp"
    COMMAND "${CMAKE_COMMAND}" -D "FROM=${folder}" -D "TO=${output}/${name}" -D "KEEP=${keep}"
            -D "LIST=${stem}.list" -P "${SHARDLAB_PLUGIN_SCRIPT}"
    COMMAND "${CMAKE_COMMAND}" -E touch "${stem}.stamp"
    DEPENDS ${inputs} "${stem}.list"
    COMMENT "Copying the data of plugin ${name}"
    VERBATIM)
  add_custom_target(plugin_${name}_data DEPENDS "${stem}.stamp")
  add_dependencies(${SHARDLAB_PLUGIN_GROUP} plugin_${name}_data)

  if(install)
    foreach(file IN LISTS files)
      get_filename_component(sub "${file}" DIRECTORY)
      install(FILES "${folder}/${file}" DESTINATION "${SHARDLAB_PLUGIN_INSTALL_DIR}/${name}/${sub}")
    endforeach()
  endif()
endfunction()

# Turns the options that the three functions share into the caller's variables `output`, `install`,
# `undefined` and `rest`.
macro(_shardlab_plugin_options)
  cmake_parse_arguments(arg "ALLOW_UNDEFINED;NO_INSTALL" "OUTPUT_DIRECTORY" "" ${ARGN})
  set(rest ${arg_UNPARSED_ARGUMENTS})
  set(output "${arg_OUTPUT_DIRECTORY}")
  if(NOT output)
    set(output "${CMAKE_BINARY_DIR}/plugins")
  endif()
  set(install ON)
  if(arg_NO_INSTALL)
    set(install OFF)
  endif()
  set(undefined ${arg_ALLOW_UNDEFINED})
endmacro()

function(shardlab_add_plugin name)
  _shardlab_plugin_options(${ARGN})
  if(NOT rest)
    message(FATAL_ERROR "shardlab_add_plugin(${name}): no sources")
  endif()
  list(GET rest 0 first)
  get_filename_component(first "${first}" ABSOLUTE)
  get_filename_component(folder "${first}" DIRECTORY)

  add_library(plugin_${name} MODULE ${rest})
  target_link_libraries(plugin_${name} PRIVATE shardlab::shardlab)
  target_compile_features(plugin_${name} PRIVATE cxx_std_20)
  target_compile_options(plugin_${name} PRIVATE -ffp-contract=off)
  if(NOT undefined)
    target_link_options(plugin_${name} PRIVATE ${SHARDLAB_NO_UNDEFINED})
  endif()
  set_target_properties(
    plugin_${name}
    PROPERTIES PREFIX "" OUTPUT_NAME "${name}" SUFFIX ".so"
               LIBRARY_OUTPUT_DIRECTORY "${output}/${name}"
               CXX_EXTENSIONS OFF
               CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
               INSTALL_RPATH "$ORIGIN/../../..")
  _shardlab_plugin_common("${name}" "${folder}" "${output}" ${install} "${name}.so")
  add_dependencies(${SHARDLAB_PLUGIN_GROUP} plugin_${name})
  if(install)
    install(TARGETS plugin_${name} LIBRARY DESTINATION "${SHARDLAB_PLUGIN_INSTALL_DIR}/${name}")
  endif()
endfunction()

function(shardlab_add_data_plugin name folder)
  _shardlab_plugin_options(${ARGN})
  get_filename_component(folder "${folder}" ABSOLUTE)
  _shardlab_plugin_common("${name}" "${folder}" "${output}" ${install} "")
endfunction()

function(shardlab_add_plugin_folder folder)
  get_filename_component(name "${folder}" NAME)
  string(REPLACE "-" "_" stem "${name}")
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  file(GLOB tables CONFIGURE_DEPENDS "${folder}/*.toml")
  file(GLOB own CONFIGURE_DEPENDS "${folder}/CMakeLists.txt")
  set(SHARDLAB_FOLDER_IS_PLUGIN ON PARENT_SCOPE)
  if(own)
    add_subdirectory("${folder}")
  elseif(EXISTS "${folder}/${stem}.cpp")
    list(REMOVE_ITEM sources "${folder}/${stem}.cpp")
    shardlab_add_plugin("${name}" "${folder}/${stem}.cpp" ${sources} ${ARGN})
  elseif(sources)
    message(WARNING "${folder} has sources, but not ${stem}.cpp: not built")
    set(SHARDLAB_FOLDER_IS_PLUGIN OFF PARENT_SCOPE)
  elseif(tables)
    shardlab_add_data_plugin("${name}" "${folder}" ${ARGN})
  else()
    set(SHARDLAB_FOLDER_IS_PLUGIN OFF PARENT_SCOPE)
  endif()
endfunction()
