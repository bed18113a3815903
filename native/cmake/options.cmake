# gnnd_options: the compile options of every target of ours.
add_library(gnnd_options INTERFACE)
target_include_directories(gnnd_options INTERFACE ${CMAKE_SOURCE_DIR}/native)
target_compile_options(gnnd_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fvisibility=hidden
  # Contracting a*b+c differs between call sites of one inline function, but bits must not.
  -ffp-contract=off)
if(GNND_SANITIZE)
  # -Wno-error: GCC warns about its own instrumentation; the plain build checks our code.
  target_compile_options(gnnd_options INTERFACE
    -Wno-error -fsanitize=${GNND_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -UNDEBUG)
  target_link_options(gnnd_options INTERFACE -fsanitize=${GNND_SANITIZE})
endif()
target_link_libraries(gnnd_options INTERFACE Threads::Threads)
