# gnnd_core: graphs, samples, segments. No torch, no Node.
file(GLOB_RECURSE core_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/core/*.cc)
add_library(gnnd_core STATIC ${core_sources})
target_link_libraries(gnnd_core PUBLIC gnnd_options ${CMAKE_DL_LIBS})

# Files named for an instruction set are compiled for it; the rest run on any x86-64 and dispatch.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  foreach(source IN LISTS core_sources)
    if(source MATCHES "_avx2\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mbmi2;-mf16c")
    elseif(source MATCHES "_avx512\\.cc$")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
        "-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx2;-mfma;-mbmi2")
    endif()
  endforeach()
endif()

# Attach refuses a segment of another build: what both sides must agree on is the shared layout.
set(shared_layout segment/layout.h segment/ledger.h segment/shape.h sample/record.h)
list(TRANSFORM shared_layout PREPEND ${CMAKE_SOURCE_DIR}/native/core/)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared_layout})
set(layout_digests "")
foreach(header IN LISTS shared_layout)
  file(SHA256 ${header} digest)
  string(APPEND layout_digests ${digest})
endforeach()
string(SHA256 layout_digest "${layout_digests}")
string(SUBSTRING ${layout_digest} 0 16 GNND_BUILD_ID)
set_property(SOURCE ${CMAKE_SOURCE_DIR}/native/core/segment/segment.cc
  APPEND PROPERTY COMPILE_DEFINITIONS GNND_BUILD_ID="${GNND_BUILD_ID}")
