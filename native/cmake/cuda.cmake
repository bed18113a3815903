# Kernels: native/cuda/*.cu. Whatever the machine, the C++ compiler makes them of what stands for a
# GPU in tests and simulated devices (gnnd_shim, native/test/cuda/shim.h):
#   gnnd_shim_kernels   host functions, to be linked with gnnd_shim
# With GNND_CUDA, nvcc makes them of device code:
#   gnnd_cuda_kernels   native/cuda/nvcc/CMakeLists.txt
file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/cuda/*.cu)

add_library(gnnd_shim STATIC EXCLUDE_FROM_ALL
  ${CMAKE_SOURCE_DIR}/native/test/cuda/fibers.cc ${CMAKE_SOURCE_DIR}/native/test/cuda/shim.cc)
target_link_libraries(gnnd_shim PRIVATE gnnd_options)
if(GNND_SANITIZE MATCHES "thread")
  # It tells ThreadSanitizer what fibers are; its own work is none of theirs.
  target_compile_definitions(gnnd_shim PRIVATE GNND_SHIM_TSAN)
  target_compile_options(gnnd_shim PRIVATE -fno-sanitize=thread)
endif()

if(cuda_sources)
  set_source_files_properties(${cuda_sources} PROPERTIES LANGUAGE CXX)
  add_library(gnnd_shim_kernels STATIC EXCLUDE_FROM_ALL ${cuda_sources})
  target_link_libraries(gnnd_shim_kernels PUBLIC gnnd_shim PRIVATE gnnd_options)
endif()
