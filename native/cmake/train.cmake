# gnnd_train: the only target that knows libtorch. Torch is taken from the wheel of GNND_PYTHON
# without importing it and without find_package(Torch), which would need CUDA's toolchain. Libraries
# of wheels are found through links beside the built files, so that these run wherever
# deploy/setup.mjs makes such links: prebuilt files of `npm pack` contain no path of this machine.
function(gnnd_wheel_link name folder)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  file(CREATE_LINK ${folder} ${CMAKE_BINARY_DIR}/lib/${name} SYMBOLIC)
endfunction()

execute_process(
  COMMAND ${GNND_PYTHON} -c
    "import importlib.util,os,re;p=os.path.dirname(importlib.util.find_spec('torch').origin);print(p);print(re.search(r\"__version__ = '([^']+)'\",open(p+'/version.py').read()).group(1))"
  OUTPUT_VARIABLE torch_facts OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" torch_facts "${torch_facts}")
list(GET torch_facts 0 torch_dir)
list(GET torch_facts 1 torch_version)
message(STATUS "PyTorch ${torch_version} in ${torch_dir}")

# OpenBLAS (train/ops/product.h) from the wheel beside it.
execute_process(
  COMMAND ${GNND_PYTHON} -c
    "import importlib.util as u,importlib.metadata as m,os;print(os.path.dirname(u.find_spec('scipy_openblas32').origin));print(m.version('scipy-openblas32'))"
  OUTPUT_VARIABLE openblas_facts OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" openblas_facts "${openblas_facts}")
list(GET openblas_facts 0 openblas_dir)
list(GET openblas_facts 1 openblas_version)
set_property(TARGET gnnd_build_id APPEND PROPERTY GNND_BITS
  "PyTorch ${torch_version}" "OpenBLAS ${openblas_version}")

add_library(torch_wheel INTERFACE)
target_include_directories(torch_wheel SYSTEM INTERFACE
  ${torch_dir}/include ${torch_dir}/include/torch/csrc/api/include)
target_link_directories(torch_wheel INTERFACE ${torch_dir}/lib)
target_link_libraries(torch_wheel INTERFACE torch_cpu c10)
# A PyTorch with CUDA registers its kernels when these libraries are loaded, although no code here
# names them. No header of CUDA is included, because those need the toolkit.
if(EXISTS ${torch_dir}/lib/libtorch_cuda.so)
  target_link_libraries(torch_wheel INTERFACE
    -Wl,--push-state,--no-as-needed,-ltorch_cuda,-lc10_cuda,--pop-state)
endif()
# DT_RPATH, not DT_RUNPATH, so that a stray LD_LIBRARY_PATH cannot bring another libtorch.
target_link_options(torch_wheel INTERFACE -Wl,--disable-new-dtags)
gnnd_wheel_link(torch ${torch_dir}/lib)

add_library(openblas_wheel INTERFACE)
target_include_directories(openblas_wheel SYSTEM INTERFACE ${openblas_dir}/include)
target_link_libraries(openblas_wheel INTERFACE ${openblas_dir}/lib/libscipy_openblas.so)
gnnd_wheel_link(openblas ${openblas_dir}/lib)

# oneDNN (train/ops/product.h) from its wheels, which exist for x86-64 only; without it all products
# run on OpenBLAS.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  execute_process(
    COMMAND ${GNND_PYTHON} -c
      "import importlib.metadata as m;l=[f for f in m.files('onednn-cpu-gomp') if f.name.startswith('libdnnl.so')][0];h=[f for f in m.files('onednn-devel-cpu-gomp') if str(f).endswith('oneapi/dnnl/dnnl.hpp')][0];print(l.locate().resolve());print(h.locate().resolve().parents[2]);print(m.version('onednn-cpu-gomp'))"
    OUTPUT_VARIABLE onednn_facts OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" onednn_facts "${onednn_facts}")
  list(GET onednn_facts 0 onednn_library)
  list(GET onednn_facts 1 onednn_include)
  list(GET onednn_facts 2 onednn_version)
  get_filename_component(onednn_dir ${onednn_library} DIRECTORY)
  set_property(TARGET gnnd_build_id APPEND PROPERTY GNND_BITS "oneDNN ${onednn_version}")
  add_library(onednn_wheel INTERFACE)
  # Comes before torch's headers, which include those of another version.
  target_include_directories(onednn_wheel SYSTEM BEFORE INTERFACE ${onednn_include})
  target_compile_definitions(onednn_wheel INTERFACE GNND_ONEDNN)
  target_link_libraries(onednn_wheel INTERFACE ${onednn_library})
  gnnd_wheel_link(onednn ${onednn_dir})
else()
  add_library(onednn_wheel INTERFACE)
endif()

file(GLOB_RECURSE train_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/train/*.cc)
add_library(gnnd_train STATIC ${train_sources})
target_link_libraries(gnnd_train PUBLIC gnnd_core onednn_wheel torch_wheel openblas_wheel)
# Our loops run on torch's own OpenMP threads: its libgomp has the soname that -fopenmp links, and
# the RPATH above finds it first.
target_compile_options(gnnd_train PRIVATE -fopenmp)
gnnd_precompiled(gnnd_train <ATen/core/Tensor.h> <torch/csrc/autograd/custom_function.h>)
target_link_options(gnnd_train PUBLIC -fopenmp)

# Asks libtorch on which devices it computes, in a process of its own.
add_executable(gnnd_torch_probe ${CMAKE_SOURCE_DIR}/native/probe/torch.cc)
set_target_properties(gnnd_torch_probe PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
target_link_libraries(gnnd_torch_probe PRIVATE gnnd_options torch_wheel)
target_include_directories(gnnd_torch_probe PRIVATE ${CMAKE_SOURCE_DIR}/native)
