# Loops over vectors (core/vec/vec.h): every *_loops.cc is compiled once for each instruction set of
# this processor's family, as an object library gnnd_loops_<set>, and chosen at run time.
file(GLOB_RECURSE loop_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/core/*_loops.cc)
set(loop_objects "")

function(gnnd_loops set)
  add_library(gnnd_loops_${set} OBJECT ${loop_sources})
  target_link_libraries(gnnd_loops_${set} PRIVATE gnnd_options)
  target_compile_definitions(gnnd_loops_${set} PRIVATE GNND_SET=${set})
  # Never without optimisation: inline functions of headers would become weak symbols, of which the
  # linker may keep the wide copy for everybody (test/process/native-symbols). Vectors are passed
  # between inlined functions only, so their calling convention does not matter.
  target_compile_options(gnnd_loops_${set} PRIVATE ${ARGN} -Wno-psabi -fno-math-errno -fno-trapping-math $<$<CONFIG:Debug>:-O2>)
  set(loop_objects ${loop_objects} $<TARGET_OBJECTS:gnnd_loops_${set}> PARENT_SCOPE)
endfunction()

gnnd_loops(plain)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mbmi2 -mf16c -mpopcnt)
  gnnd_loops(avx2 ${avx2})
  gnnd_loops(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  gnnd_loops(neon)
endif()
