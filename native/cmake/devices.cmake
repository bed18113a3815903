# Device plug-ins (include/gnnd/device_plugin.h): gnnd_sim for tests and whoever asks for it, since it
# takes a tenth of a build; gnnd_cuda if there is nvcc. Each exports one symbol, and the code above
# their libraries is compiled once.
file(GLOB device_plugin_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/cuda/plugin/*.cc)
add_library(gnnd_device_plugin OBJECT EXCLUDE_FROM_ALL ${device_plugin_sources})
target_link_libraries(gnnd_device_plugin PRIVATE gnnd_options)

function(gnnd_device_plugin name)
  add_library(${name} MODULE $<TARGET_OBJECTS:gnnd_device_plugin> ${ARGN})
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}
    LINK_DEPENDS ${CMAKE_SOURCE_DIR}/native/cmake/device_plugin.map)
  target_link_libraries(${name} PRIVATE gnnd_core)
  target_link_options(${name} PRIVATE
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/native/cmake/device_plugin.map -Wl,--gc-sections)
endfunction()

file(GLOB sim_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/cuda/sim/*.cc)
add_library(gnnd_sim_parts OBJECT EXCLUDE_FROM_ALL ${sim_sources})
target_link_libraries(gnnd_sim_parts PRIVATE gnnd_options)
set(sim_pose ${CMAKE_SOURCE_DIR}/native/cuda/sim/pose)
gnnd_device_plugin(gnnd_sim $<TARGET_OBJECTS:gnnd_sim_parts> ${sim_pose}/simulated.cc)
target_link_libraries(gnnd_sim PRIVATE gnnd_shim_kernels gnnd_shim)
if(NOT GNND_SIM)
  set_target_properties(gnnd_sim PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
# The simulated devices under CUDA's name, for rehearsals of GPU tools (bench/gpu-check). It has a
# folder of its own, so that nobody takes it for the plug-in of a GPU.
if(GNND_TESTS)
  gnnd_device_plugin(gnnd_posing $<TARGET_OBJECTS:gnnd_sim_parts> ${sim_pose}/cuda.cc)
  set_target_properties(gnnd_posing PROPERTIES
    OUTPUT_NAME gnnd_cuda LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/posing)
  target_link_libraries(gnnd_posing PRIVATE gnnd_shim_kernels gnnd_shim)
endif()

# CUDA's runtime is linked statically, so the plug-in loads without any file of the toolkit.
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

# Asks a plug-in which devices there are, in a process of its own.
add_executable(gnnd_probe ${CMAKE_SOURCE_DIR}/native/probe/main.cc)
set_target_properties(gnnd_probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_link_libraries(gnnd_probe PRIVATE gnnd_core)
