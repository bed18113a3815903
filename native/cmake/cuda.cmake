# Kernels: native/cuda/*.cu. On every machine the C++ compiler makes them for the stand-in of a GPU
# in tests and simulated devices (gnnd_shim, native/cuda/shim/shim.h):
#  gnnd_shim_kernels   host functions, to be linked with gnnd_shim
# With nvcc there is also device code, for all architectures, compiled without a warning:
#  gnnd_cuda_kernels   a static library, built on demand
file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/cuda/*.cu)

set(shim_sources
  ${CMAKE_SOURCE_DIR}/native/cuda/shim/fibers.cc ${CMAKE_SOURCE_DIR}/native/cuda/shim/shim.cc)
add_library(gnnd_shim STATIC EXCLUDE_FROM_ALL ${shim_sources})
target_link_libraries(gnnd_shim PRIVATE gnnd_options)
if(GNND_SANITIZE MATCHES "thread")
  # The shim tells ThreadSanitizer about fibers, and is not instrumented itself. Options of sources
  # come last.
  set_source_files_properties(${shim_sources} PROPERTIES
    COMPILE_DEFINITIONS GNND_SHIM_TSAN COMPILE_OPTIONS -fno-sanitize=thread)
endif()

if(cuda_sources)
  set_source_files_properties(${cuda_sources} PROPERTIES LANGUAGE CXX)
  add_library(gnnd_shim_kernels STATIC EXCLUDE_FROM_ALL ${cuda_sources})
  target_link_libraries(gnnd_shim_kernels PUBLIC gnnd_shim PRIVATE gnnd_options)
endif()

find_program(GNND_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
if(GNND_NVCC AND cuda_sources)
  # Only architectures that this nvcc knows: Blackwell since 12.8; 13 dropped all before Turing.
  execute_process(COMMAND ${GNND_NVCC} --version OUTPUT_VARIABLE nvcc_version)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" unused "${nvcc_version}")
  set(known_architectures "75;80;86;89;90")
  if(CMAKE_MATCH_1 VERSION_GREATER_EQUAL 12.8)
    list(APPEND known_architectures 100 120)
  endif()
  set(GNND_CUDA_ARCHITECTURES "${known_architectures}" CACHE STRING "Architectures of gnnd_cuda")
  # Machine code for each; for the last one also PTX, which newer GPUs compile for themselves.
  set(nvcc_code "")
  foreach(architecture IN LISTS GNND_CUDA_ARCHITECTURES)
    list(APPEND nvcc_code -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET GNND_CUDA_ARCHITECTURES -1 newest)
  list(APPEND nvcc_code -gencode arch=compute_${newest},code=compute_${newest})
  set(nvcc_objects "")
  if(GNND_WARNINGS_ARE_ERRORS)
    set(nvcc_warnings -Werror all-warnings -Xcompiler -Werror)
  endif()
  foreach(source IN LISTS cuda_sources)
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_BINARY_DIR}/cuda/${name}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/cuda
      COMMAND ${GNND_NVCC} -std=c++20 -O3 ${nvcc_code} --expt-relaxed-constexpr
        # No contraction, as in options.cmake, because it changes bits.
        -fmad=false ${nvcc_warnings}
        -Xcompiler -Wall,-Wextra,-fPIC,-fvisibility=hidden,-ffp-contract=off,${GNND_PREFIX_MAP}
        -I${CMAKE_SOURCE_DIR}/native -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "nvcc ${name}.cu"
      VERBATIM)
    list(APPEND nvcc_objects ${object})
  endforeach()
  add_library(gnnd_cuda_kernels STATIC EXCLUDE_FROM_ALL ${nvcc_objects})
  set_target_properties(gnnd_cuda_kernels PROPERTIES LINKER_LANGUAGE CXX)
endif()
