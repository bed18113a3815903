# gnnd_reference: samplers written for readability, with which tests and benchmarks compare.
add_library(gnnd_reference STATIC ${CMAKE_SOURCE_DIR}/native/test/support/reference.cc
  ${CMAKE_SOURCE_DIR}/native/test/support/links_reference.cc
  ${CMAKE_SOURCE_DIR}/native/test/support/temporal_reference.cc)
target_link_libraries(gnnd_reference PUBLIC gnnd_core)
