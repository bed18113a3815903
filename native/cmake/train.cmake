# gnnd_train: the only place that knows libtorch. Torch is taken from the wheel of GNND_PYTHON
# without importing it and without find_package(Torch), which would drag in CUDA's toolchain.
execute_process(
  COMMAND ${GNND_PYTHON} -c
    "import importlib.util,os,re;p=os.path.dirname(importlib.util.find_spec('torch').origin);print(p);print(re.search(r\"__version__ = '([^']+)'\",open(p+'/version.py').read()).group(1))"
  OUTPUT_VARIABLE torch_facts OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "\n" ";" torch_facts "${torch_facts}")
list(GET torch_facts 0 torch_dir)
list(GET torch_facts 1 torch_version)
message(STATUS "PyTorch ${torch_version} in ${torch_dir}")

# OpenBLAS (train/matmul.h) from the wheel beside it.
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
# DT_RPATH, not DT_RUNPATH: a stray LD_LIBRARY_PATH must not bring another libtorch.
target_link_options(torch_wheel INTERFACE -Wl,--disable-new-dtags -Wl,-rpath,${torch_dir}/lib)
set(CMAKE_SKIP_BUILD_RPATH ON)

add_library(openblas_wheel INTERFACE)
target_include_directories(openblas_wheel SYSTEM INTERFACE ${openblas_dir}/include)
target_link_libraries(openblas_wheel INTERFACE ${openblas_dir}/lib/libscipy_openblas.so)
target_link_options(openblas_wheel INTERFACE -Wl,-rpath,${openblas_dir}/lib)

file(GLOB_RECURSE train_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/native/train/*.cc)
add_library(gnnd_train STATIC ${train_sources})
target_link_libraries(gnnd_train PUBLIC gnnd_core torch_wheel openblas_wheel)
# Our loops run on torch's own OpenMP threads: its libgomp has the soname that -fopenmp links, and
# the RPATH above finds it first.
target_compile_options(gnnd_train PRIVATE -fopenmp)
target_link_options(gnnd_train PUBLIC -fopenmp)
