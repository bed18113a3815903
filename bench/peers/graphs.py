#!/usr/bin/env python3
"""Graphs that every contestant samples, as .npy files in build/bench/graphs/NAME.

usage: graphs.py NAME ...         NAME: power-law-124m  power-law-2m  npm-deps-2016
                                        debian-bookworm  products-part

  indptr.npy        int64   [N + 1]   CSC: row v lists the in-neighbours of v
  indices.npy       int32   [E]
  edge_weights.npy  float32 [E]       uniform in (0, 1], or the data set's own
  seeds.npy         int64             training nodes in the order in which batches take them
npm-deps-2016 and debian-bookworm also have what unpack.py gives: features, labels and splits.
products-part is the graph of bench/products/graph.py with 16 batches of 1,024 training nodes and
1,024 nodes each to validate and to test, and neither seeds nor edge weights.

The power-law graphs have Pareto-distributed degrees (shape 1.95, cut at 390 times the mean) and
draw the other end of every edge in proportion to its degree; ids are in random order, the worst
case for locality; neighbours may repeat. power-law-124m: 2.4 M nodes, 124 M edges (like
ogbn-products: median degree 36); power-law-2m: 169 k nodes, 2.3 M edges. They depend on numpy's
PCG64 generator and the fixed random seed only. What exists is left alone. Needs numpy only, and for
npm-deps-2016 and debian-bookworm the folder of the shared data sets: $GNND_SHARED, else ../shared
beside the clone.
"""
import os
import subprocess
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAPHS = os.path.join(ROOT, 'build', 'bench', 'graphs')
POWER_LAW = {'power-law-124m': (2_400_000, 124_000_000), 'power-law-2m': (169_000, 2_300_000)}
RANDOM_SEED = 20161224
SHAPE, CUT = 1.95, 390
CHUNK = 8_000_000
PART = {'train': 16 * 1024, 'val': 1024, 'test': 1024}


def power_law(num_nodes, num_edges):
    random = np.random.default_rng(RANDOM_SEED)
    weights = np.minimum((1 - random.random(num_nodes)) ** (-1 / SHAPE), CUT * SHAPE / (SHAPE - 1))
    indptr = np.zeros(num_nodes + 1, np.int64)
    indptr[1:] = np.cumsum(weights) / weights.sum() * num_edges
    indptr[-1] = num_edges
    owner = np.repeat(np.arange(num_nodes, dtype=np.int32), np.diff(indptr))
    indices = np.empty(num_edges, np.int32)
    for begin in range(0, num_edges, CHUNK):
        end = min(begin + CHUNK, num_edges)
        indices[begin:end] = owner[random.integers(0, num_edges, end - begin)]
    return indptr, indices, np.arange(0, num_nodes, 10)


def save(folder, arrays):
    os.makedirs(folder, exist_ok=True)
    for name, array in arrays.items():
        np.save(os.path.join(folder, name + '.npy'), array)


def with_seeds_and_weights(folder, num_edges, train):
    random = np.random.default_rng(RANDOM_SEED + 1)
    weights = np.empty(num_edges, np.float32)
    for begin in range(0, num_edges, CHUNK):
        end = min(begin + CHUNK, num_edges)
        weights[begin:end] = 1 - random.random(end - begin, dtype=np.float32)
    # A data set may have weights of its own.
    if not os.path.exists(os.path.join(folder, 'edge_weights.npy')):
        save(folder, {'edge_weights': weights})
    save(folder, {'seeds': random.permutation(train).astype(np.int64)})


def products_part(folder):
    whole = os.path.join(os.path.dirname(GRAPHS), 'products')
    script = os.path.join(ROOT, 'bench', 'products', 'graph.py')
    subprocess.run([sys.executable, script, whole], check=True, stdout=sys.stderr)
    os.makedirs(folder, exist_ok=True)
    for name in ('indptr', 'indices', 'features', 'labels'):
        path = os.path.join(folder, name + '.npy')
        if not os.path.exists(path):
            os.link(os.path.join(whole, name + '.npy'), path)
    splits = {name: np.load(os.path.join(whole, name + '.npy'))[:size]
              for name, size in PART.items()}
    save(folder, splits)


def folder_of(name):
    """Makes the graph unless it is there; its folder."""
    folder = os.path.join(GRAPHS, name)
    if name == 'products-part':
        products_part(folder)
        return folder
    if os.path.exists(os.path.join(folder, 'seeds.npy')):
        return folder
    print(f'making {name}', file=sys.stderr, flush=True)
    if name in POWER_LAW:
        indptr, indices, train = power_law(*POWER_LAW[name])
        save(folder, {'indptr': indptr, 'indices': indices})
    else:
        shared = os.environ.get('GNND_SHARED', os.path.join(os.path.dirname(ROOT), 'shared'))
        unpack = os.path.join(shared, 'data', 'unpack.py')
        command = [sys.executable, unpack, GRAPHS, name]
        subprocess.run(command, check=True, stdout=sys.stderr)
        indices = np.load(os.path.join(folder, 'indices.npy'), mmap_mode='r')
        train = np.load(os.path.join(folder, 'train.npy'))
    with_seeds_and_weights(folder, len(indices), train)
    return folder


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for graph in sys.argv[1:]:
        print(folder_of(graph))
