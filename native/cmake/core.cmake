# gnnd_core: graphs, samples, segments. No torch, no Node.
file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/core/*.cc)
add_library(gnnd_core STATIC ${core_sources} $<TARGET_OBJECTS:gnnd_build_id>)
target_link_libraries(gnnd_core PUBLIC gnnd_options ${CMAKE_DL_LIBS})

# Files named for an instruction set are compiled for it; the rest run on any x86-64 and dispatch.
# Never without optimisation: what is inline in a header would become a weak symbol, of which the
# linker may keep the wide copy for everybody (test/process/native-symbols).
set(wide_options $<$<CONFIG:Debug>:-O2>)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  foreach(source IN LISTS core_sources)
    if(source MATCHES "_avx2\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx2;-mfma;-mbmi2;-mf16c;${wide_options}")
    elseif(source MATCHES "_avx512\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx2;-mfma;-mbmi2;${wide_options}")
    endif()
  endforeach()
endif()
