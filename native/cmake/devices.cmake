# Device plug-ins (include/gnnd/device_plugin.h): gnnd_sim always, gnnd_cuda where there is nvcc. One
# symbol of each is visible.
file(GLOB device_plugin_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/cuda/plugin/*.cc)

function(gnnd_device_plugin name)
  add_library(${name} MODULE ${device_plugin_sources} ${ARGN})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/native/cmake/device_plugin.map)
  target_link_libraries(${name} PRIVATE gnnd_core)
  target_link_options(${name} PRIVATE
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/native/cmake/device_plugin.map -Wl,--gc-sections)
endfunction()

file(GLOB sim_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/cuda/sim/*.cc)
gnnd_device_plugin(gnnd_sim ${sim_sources})
target_link_libraries(gnnd_sim PRIVATE gnnd_shim_kernels gnnd_shim)

# CUDA's runtime is linked statically: the plug-in needs no file of the toolkit to load.
if(TARGET gnnd_cuda_kernels)
  execute_process(COMMAND ${GNND_NVCC} --dryrun -x cu -c /dev/null -o /dev/null
    ERROR_VARIABLE nvcc_says RESULT_VARIABLE nvcc_failed)
  string(REGEX MATCH "#\\$ TOP=([^\n]+)" nvcc_top "${nvcc_says}")
  get_filename_component(cuda_root "${CMAKE_MATCH_1}" REALPATH)
  find_library(GNND_CUDART cudart_static HINTS ${cuda_root}/lib64 ${cuda_root}/lib
    ${cuda_root}/targets/x86_64-linux/lib NO_DEFAULT_PATH)
  if(NOT GNND_CUDART)
    message(STATUS "nvcc is there, CUDA's static runtime is not: no gnnd_cuda")
  endif()
endif()
if(TARGET gnnd_cuda_kernels AND GNND_CUDART)
  string(REPLACE ";" "," cuda_architectures "${GNND_CUDA_ARCHITECTURES}")
  file(GLOB runtime_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/cuda/runtime/*.cc)
  gnnd_device_plugin(gnnd_cuda ${runtime_sources})
  target_include_directories(gnnd_cuda SYSTEM PRIVATE ${cuda_root}/include)
  target_compile_definitions(gnnd_cuda PRIVATE GNND_CUDA_ARCHITECTURES="${cuda_architectures}")
  target_link_libraries(gnnd_cuda PRIVATE gnnd_cuda_kernels ${GNND_CUDART} rt)
  if(NOT GNND_CUDA)
    set_target_properties(gnnd_cuda PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  message(STATUS "CUDA in ${cuda_root}: gnnd_cuda for ${cuda_architectures}")
endif()

# What asks a plug-in which devices there are, in a process of its own.
add_executable(gnnd_probe ${CMAKE_SOURCE_DIR}/native/probe/main.cc)
set_target_properties(gnnd_probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_link_libraries(gnnd_probe PRIVATE gnnd_core)
