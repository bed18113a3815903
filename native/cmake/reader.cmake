# gnnd_reader.so: batches of a job for a process that trains by itself. It has the parts of core
# that it uses and exports its own functions alone.
add_library(gnnd_reader MODULE ${CMAKE_SOURCE_DIR}/native/reader/reader.cc)
set_target_properties(gnnd_reader PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_link_libraries(gnnd_reader PRIVATE gnnd_core -Wl,--exclude-libs,ALL -Wl,--gc-sections)
