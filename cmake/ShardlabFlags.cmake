# ShardlabFlags: how this project's own code is compiled.
#
# Included once by the top CMakeLists.txt, before any target. It reads
#
#   SHARDLAB_WERROR     ON: our warnings are errors (presets dev and clang; off for users, whose
#                       compiler may know warnings that we do not)
#   SHARDLAB_SANITIZE   "" | "address,undefined" | "thread": passed to -fsanitize=
#   SHARDLAB_FUZZ       ON: clang's libFuzzer coverage in every target (preset fuzz)
#   SHARDLAB_CCACHE     ON: use ccache when it is found
#
# and sets directory-wide options. Two of them are part of the results, not of taste:
# -ffp-contract=off (golden values agree between compilers; never add -ffast-math) and hidden
# visibility (a plugin shows its entry function and nothing else; a symbol of the framework that
# plugins or upper floors call is marked for export where it is declared).

option(SHARDLAB_WERROR "Treat warnings in this project's code as errors" OFF)
option(SHARDLAB_FUZZ "Build the fuzz targets (clang only)" OFF)
option(SHARDLAB_CCACHE "Compile through ccache when it is installed" ON)
set(SHARDLAB_SANITIZE "" CACHE STRING "Sanitizers: empty, address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_compile_options(-Wall -Wextra -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
if(SHARDLAB_WERROR)
  add_compile_options(-Werror)
endif()

# What a linker may ask for: every symbol of a shared object is known when it is linked. Clang's
# sanitizer runtime lives in the executable, so its symbols are unknown there by design.
set(SHARDLAB_NO_UNDEFINED "-Wl,-z,defs")

if(SHARDLAB_SANITIZE)
  add_compile_options(-fsanitize=${SHARDLAB_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SHARDLAB_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(SHARDLAB_NO_UNDEFINED "")
  else()
    add_compile_options(-Wno-maybe-uninitialized) # g++ 12 sees ghosts in instrumented code
  endif()
endif()

if(SHARDLAB_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SHARDLAB_FUZZ needs clang: cmake --preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
  set(SHARDLAB_NO_UNDEFINED "")
endif()

if(SHARDLAB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(SHARDLAB_CCACHE_PROGRAM ccache)
  if(SHARDLAB_CCACHE_PROGRAM)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${SHARDLAB_CCACHE_PROGRAM}")
  endif()
endif()
