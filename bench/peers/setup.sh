#!/usr/bin/env bash
# Installs the systems that bench/peers measures gnnd against, from PyPI, each in a virtual
# environment of its own under .cache/peers:
#
#   dgl   DGL 2.1.0 with GraphBolt on PyTorch 2.2.1 (the one GraphBolt's library is bound to), and
#         what gnnd's Python package needs, for gnnd.loader(form='blocks')
#   pyg   torch_geometric 2.8.1 on the project's own PyTorch (.venv, made by deploy/setup.mjs)
#
# usage: bench/peers/setup.sh [--with-pyg-lib FOLDER] [--with-torch-sparse]
#
#   --with-pyg-lib FOLDER  also compiles what samples of pyg-lib, PyG's sampler, which PyPI has not:
#                          FOLDER is a checkout of it with third_party/parallel-hashmap. 4 minutes.
#   --with-torch-sparse    also builds torch-scatter and torch-sparse, PyG's older sampler, from
#                          source: 20 to 30 minutes on two cores. Contestants `pyg-adj` need it.
#
# Idempotent: what is there and imports is left alone. Needs python3 with venv, gcc, readelf and
# about 2 GB of disk; about 4 minutes.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here="$root/bench/peers"
peers="$root/.cache/peers"
say() { printf '%-8s %s\n' "$1" "$2"; }

with_torch_sparse=false
pyg_lib=
while [ $# -gt 0 ]; do
  case "$1" in
    --with-torch-sparse) with_torch_sparse=true ;;
    --with-pyg-lib) pyg_lib=$(cd "${2:?the folder of pyg-lib}" && pwd); shift ;;
    *) sed -n '2,19s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 64 ;;
  esac
  shift
done

# pip_in NAME ARGUMENTS...: pip of that environment, quiet, told nothing about where to look.
pip_in() {
  local name=$1
  shift
  "$peers/$name/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
}

make_venv() {
  [ -x "$peers/$1/bin/python" ] || python3 -m venv "$peers/$1"
}

# PyTorch 2.2.1 for Linux exists on PyPI as a CUDA build only. Its CUDA libraries weigh 2.5 GB and
# are never called on a CPU: three small ones are installed, the others are replaced by libraries
# whose functions trap (stub_cuda.py).
setup_dgl() {
  make_venv dgl
  if imports_dgl; then
    say dgl 'is there'
    return
  fi
  say dgl 'installing what PyTorch and DGL need of Python'
  pip_in dgl 'numpy<2' pandas scipy pydantic pyyaml requests tqdm psutil networkx jinja2 sympy \
    filelock fsspec typing_extensions setuptools 'grpcio>=1.76,<2' 'protobuf>=6.31.1,<8'
  say dgl 'installing PyTorch 2.2.1 without its CUDA libraries (760 MB to fetch)'
  pip_in dgl --no-deps torch==2.2.1
  pip_in dgl --no-deps nvidia-cuda-runtime-cu12==12.1.105 nvidia-nvtx-cu12==12.1.105 \
    nvidia-cuda-cupti-cu12==12.1.105
  say dgl 'installing DGL 2.1.0 with GraphBolt'
  pip_in dgl --no-deps dgl==2.1.0 torchdata==0.7.1
  say dgl 'making libraries in place of the CUDA ones that a CPU never calls'
  "$peers/dgl/bin/python" "$here/stub_cuda.py"
  imports_dgl || { say dgl 'does not import; the error:'; import_dgl; }
}

import_dgl() {
  "$peers/dgl/bin/python" -c 'import torch, dgl, dgl.graphbolt, grpc; print("DGL", dgl.__version__)'
}
imports_dgl() { import_dgl >/dev/null 2>&1; }

# The project's PyTorch, seen through a path file: the same build for both sides of a comparison.
setup_pyg() {
  local torch_folder
  if ! torch_folder=$("$root/.venv/bin/python" -c \
    'import sysconfig, torch; print(sysconfig.get_path("purelib"))'); then
    say pyg 'needs the project'\''s PyTorch: run node deploy/setup.mjs first'
    exit 1
  fi
  make_venv pyg
  printf '%s\n' "$torch_folder" >"$("$peers/pyg/bin/python" -c \
    'import sysconfig; print(sysconfig.get_path("purelib"))')/project-torch.pth"
  if "$peers/pyg/bin/python" -c 'import torch_geometric' 2>/dev/null; then
    say pyg 'is there'
  else
    say pyg 'installing torch_geometric 2.8.1'
    pip_in pyg torch_geometric==2.8.1
  fi
  if [ -n "$pyg_lib" ]; then
    setup_pyg_lib
  fi
  if $with_torch_sparse; then
    setup_torch_sparse
  elif ! imports_pyg_lib && ! imports_torch_sparse; then
    say pyg 'without pyg-lib and torch-sparse: PyG cannot sample here, its step is measured'
  fi
}

imports_pyg_lib() {
  "$peers/pyg/bin/python" -c 'import torch, pyg_lib; torch.ops.pyg.neighbor_sample' 2>/dev/null
}

# Without its products, of which loaders call none. Its sources are one to the compiler, so that it
# reads PyTorch's headers once.
setup_pyg_lib() {
  if imports_pyg_lib; then
    say pyg 'pyg-lib is there'
    return
  fi
  say pyg 'compiling what samples of pyg-lib (4 minutes)'
  local python="$peers/pyg/bin/python" site torch work name
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  torch=$("$python" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
  work=$(mktemp -d)
  mkdir -p "$work/pyg_lib/csrc"
  printf '#define WITH_MKL_BLAS() 0\n#define NO_METIS() 1\n' >"$work/pyg_lib/csrc/config.h"
  for name in library utils/check utils/convert random/cpu/biased_sampling \
    sampler/neighbor sampler/subgraph sampler/cpu/neighbor_kernel sampler/cpu/subgraph_kernel \
    ops/index_sort ops/cpu/index_sort_kernel; do
    printf '#include "pyg_lib/csrc/%s.cpp"\n' "$name"
  done >"$work/all.cc"
  cp -r "$pyg_lib/pyg_lib" "$site/"
  g++ -shared -fPIC -std=c++20 -O3 -DNDEBUG -fopenmp -w -I"$work" -I"$pyg_lib" \
    -I"$pyg_lib/third_party/parallel-hashmap" -I"$torch/include" \
    -I"$torch/include/torch/csrc/api/include" "$work/all.cc" -o "$site/pyg_lib/libpyg.so" \
    -L"$torch/lib" -Wl,-rpath,"$torch/lib" -lc10 -ltorch_cpu -ltorch
  rm -r "$work"
  imports_pyg_lib || { say pyg 'pyg-lib does not import; the error:'; "$python" -c 'import pyg_lib'; }
}

imports_torch_sparse() { "$peers/pyg/bin/python" -c 'import torch_sparse' 2>/dev/null; }

setup_torch_sparse() {
  if imports_torch_sparse; then
    say pyg 'torch-sparse is there'
    return
  fi
  pip_in pyg ninja 'setuptools<81' wheel scipy
  local package
  for package in torch-scatter==2.1.2 torch-sparse==0.6.18; do
    say pyg "compiling $package (10 to 20 minutes)"
    PATH="$peers/pyg/bin:$PATH" FORCE_ONLY_CPU=1 WITH_METIS=0 CFLAGS=-g0 CXXFLAGS=-g0 MAX_JOBS=1 \
      pip_in pyg --no-build-isolation --no-deps "$package"
  done
}

mkdir -p "$peers"
setup_dgl
setup_pyg
