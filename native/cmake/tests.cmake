# doctest.h comes from the system or from a folder that set-up names.
find_path(DOCTEST_INCLUDE doctest/doctest.h REQUIRED)
enable_testing()
function(gnnd_test name)
  add_executable(${name} ${CMAKE_SOURCE_DIR}/native/test/main.cc ${ARGN})
  target_include_directories(${name} SYSTEM PRIVATE ${DOCTEST_INCLUDE})
  add_test(NAME ${name} COMMAND ${name})
endfunction()

file(GLOB_RECURSE core_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/test/core/*_test.cc)
# Tests of the ledger and of executors run once, with failpoints (gnnd_fault_test below); what
# explores a model of them needs none of their code.
list(FILTER core_tests EXCLUDE REGEX "/(ledger|executor)/[a-z_]*_test\\.cc$")
file(GLOB explored CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/native/test/core/ledger/*explore_test.cc)
gnnd_test(gnnd_core_test ${core_tests} ${explored}
  ${CMAKE_SOURCE_DIR}/native/test/core/ledger/segment_model.cc)
target_link_libraries(gnnd_core_test PRIVATE gnnd_reference ${CMAKE_DL_LIBS})
add_dependencies(gnnd_core_test gnnd_reader)

# Tests of device plug-ins: their own parts, and their table as gnnd sees it.
file(GLOB_RECURSE device_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/test/device/*_test.cc)
file(GLOB sim_parts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/cuda/sim/script.cc
  ${CMAKE_SOURCE_DIR}/native/cuda/plugin/failure.cc ${CMAKE_SOURCE_DIR}/native/cuda/runtime/nvml.cc)
gnnd_test(gnnd_device_test ${device_tests} ${sim_parts})
target_link_libraries(gnnd_device_test PRIVATE gnnd_reference ${CMAKE_DL_LIBS})
add_library(gnnd_fake_nvml MODULE ${CMAKE_SOURCE_DIR}/native/test/device/fake_nvml.cc)
set_target_properties(gnnd_fake_nvml PROPERTIES
  PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
add_dependencies(gnnd_device_test gnnd_sim gnnd_posing gnnd_fake_nvml)
# Tests of kernels beside their twins in core; kernels run as fibers.
file(GLOB cuda_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/test/cuda/*_test.cc)
gnnd_test(gnnd_cuda_test ${cuda_tests})
target_link_libraries(gnnd_cuda_test PRIVATE gnnd_reference gnnd_shim)
if(TARGET gnnd_shim_kernels)
  target_link_libraries(gnnd_cuda_test PRIVATE gnnd_shim_kernels)
endif()

# Samplers as users write them: in C11, with nothing but the public header.
enable_language(C)
file(GLOB plugin_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/test/plugins/*.c)
foreach(source IN LISTS plugin_sources)
  get_filename_component(name ${source} NAME_WE)
  add_library(gnnd_plugin_${name} MODULE ${source})
  set_target_properties(gnnd_plugin_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_include_directories(gnnd_plugin_${name} PRIVATE ${CMAKE_SOURCE_DIR}/native/include)
  target_compile_options(gnnd_plugin_${name} PRIVATE
    -Wall -Wextra -Wpedantic -Wconversion ${GNND_WARNINGS_ARE_ERRORS} -fvisibility=hidden)
  add_dependencies(gnnd_core_test gnnd_plugin_${name})
endforeach()

# The segment's protocol with its failpoints compiled in: executors die at named points, and rules
# are dropped one at a time. It compiles the protocol anew and must not link gnnd_core.
file(GLOB fault_sources CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/native/core/ledger/*.cc
  ${CMAKE_SOURCE_DIR}/native/core/image/*.cc
  ${CMAKE_SOURCE_DIR}/native/test/core/ledger/*_test.cc
  ${CMAKE_SOURCE_DIR}/native/test/core/executor/*_test.cc)
list(FILTER fault_sources EXCLUDE REGEX explore_test)  # explores a model, not this code
foreach(part base/atomic_file base/mapping base/memfd base/prefetch base/registrar base/sha256
        batch/record batch/layout metric/ranking graph/npy history/history_buffer history/job_history
        executor/executor executor/extractor executor/lender executor/reading_ahead executor/committer
        executor/chunk_files executor/prediction_files executor/predictions executor/row_outputs
        executor/sampler_loop executor/trainer_loop)
  list(APPEND fault_sources ${CMAKE_SOURCE_DIR}/native/core/${part}.cc)
endforeach()
gnnd_test(gnnd_fault_test ${fault_sources} $<TARGET_OBJECTS:gnnd_build_id>)
target_compile_definitions(gnnd_fault_test PRIVATE GNND_FAILPOINTS)
target_link_libraries(gnnd_fault_test PRIVATE gnnd_options ${CMAKE_DL_LIBS})
add_dependencies(gnnd_fault_test gnnd_reader)

if(GNND_TRAIN)
  file(GLOB_RECURSE train_tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/test/train/*_test.cc)
  gnnd_test(gnnd_train_test ${train_tests})
  target_link_libraries(gnnd_train_test PRIVATE gnnd_train)
  gnnd_precompiled(gnnd_train_test <ATen/core/Tensor.h> <torch/csrc/autograd/custom_function.h>)
  add_dependencies(gnnd_train_test gnnd_sim gnnd_posing)
  # The tests that may use a GPU, for bench/gpu-check, where compiling all would take too long.
  list(FILTER train_tests INCLUDE REGEX "/device_[a-z_]*test\\.cc$")
  add_executable(gnnd_train_device_test EXCLUDE_FROM_ALL
    ${CMAKE_SOURCE_DIR}/native/test/main.cc ${train_tests})
  target_include_directories(gnnd_train_device_test SYSTEM PRIVATE ${DOCTEST_INCLUDE})
  target_link_libraries(gnnd_train_device_test PRIVATE gnnd_train)

  # Models for test/process/checkpoint, which loads them into torch_geometric.
  add_executable(gnnd_pyg_export ${CMAKE_SOURCE_DIR}/native/test/train/pyg_export.cc)
  target_link_libraries(gnnd_pyg_export PRIVATE gnnd_train)
endif()
