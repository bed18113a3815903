# gnnd_options: the compile options of every target of ours.
add_library(gnnd_options INTERFACE)
# Warnings are errors with the compiler by which every change is checked. Another one warns of other
# things (GCC 13 of the inlined insides of std::vector), which must not end a user's build.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^12\\.")
  set(GNND_WARNINGS_ARE_ERRORS -Werror)
endif()
target_include_directories(gnnd_options INTERFACE ${CMAKE_SOURCE_DIR}/native)
target_compile_options(gnnd_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow ${GNND_WARNINGS_ARE_ERRORS} -fvisibility=hidden
  # Contracting a*b+c differs between call sites of one inline function, but bits must not.
  -ffp-contract=off)
if(GNND_SANITIZE)
  # -Wno-error: GCC warns about its own instrumentation; the plain build checks our code.
  target_compile_options(gnnd_options INTERFACE
    -Wno-error -fsanitize=${GNND_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -UNDEBUG)
  target_link_options(gnnd_options INTERFACE -fsanitize=${GNND_SANITIZE})
endif()
target_link_libraries(gnnd_options INTERFACE Threads::Threads)
