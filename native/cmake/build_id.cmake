# gnnd_build_id: a digest of all sources and options that decide bits (write_build_id.cmake). Attach
# refuses a segment of another build, so a replaced package cannot join a running job. It is made
# anew when a source changes, without another run of CMake.
file(GLOB_RECURSE bit_sources CONFIGURE_DEPENDS LIST_DIRECTORIES false ${CMAKE_SOURCE_DIR}/native/*)
list(FILTER bit_sources EXCLUDE REGEX "^${CMAKE_SOURCE_DIR}/native/test/")
set(bit_options ${CMAKE_BINARY_DIR}/build_options.txt)
add_custom_command(
  OUTPUT ${CMAKE_BINARY_DIR}/build_id.cc
  BYPRODUCTS ${CMAKE_BINARY_DIR}/build_id.txt
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOPTIONS=${bit_options}
    -DOUT=${CMAKE_BINARY_DIR} -P ${CMAKE_SOURCE_DIR}/native/cmake/write_build_id.cmake
  DEPENDS ${bit_sources} ${CMAKE_SOURCE_DIR}/CMakeLists.txt ${bit_options}
  COMMENT "Build id"
  VERBATIM)
add_library(gnnd_build_id OBJECT ${CMAKE_BINARY_DIR}/build_id.cc)
target_link_libraries(gnnd_build_id PRIVATE gnnd_options)

# Other files may append lines to GNND_BITS (train.cmake does); they are read when all are known.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
set_target_properties(gnnd_build_id PROPERTIES GNND_BITS
  "compiler ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_SYSTEM_PROCESSOR};\
flags ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}};sanitize ${GNND_SANITIZE}")
file(GENERATE OUTPUT ${bit_options}
  CONTENT "$<JOIN:$<TARGET_PROPERTY:gnnd_build_id,GNND_BITS>,\n>\n")
