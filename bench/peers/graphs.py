#!/usr/bin/env python3
"""Graphs of benchmarks: made here, or given by who runs them.

usage: graphs.py NAME ...             graphs that every contestant samples: build/bench/graphs/NAME
       graphs.py --dataset NAME ...   the same without what is added for that, to import

  indptr.npy        int64   [N + 1]   CSC: row v lists the in-neighbours of v
  indices.npy       int32   [E]
  edge_weights.npy  float32 [E]       uniform in (0, 1], or the data set's own; added
  seeds.npy         int64             training nodes in the order in which batches take them; added

products-60k, products-300k  The graph of bench/products/graph.py, 1/40 and 1/8 of its size, with
                             features, labels and splits.
products-part                The whole of it, with 16 batches of 1,024 training nodes and 1,024 nodes
                             each to validate and to test; nothing is added.
power-law-124m, power-law-2m Only links: Pareto-distributed degrees (shape 1.95, cut at 390 times the
                             mean), and the other end of every edge drawn in proportion to its
                             degree; ids are in random order, the worst case for locality;
                             neighbours may repeat. 2.4 M nodes, 124 M edges (like ogbn-products:
                             median degree 36), and 169 k nodes, 2.3 M edges.
any other name               The folder NAME of .npy files in $GNND_DATASETS, flat or of several
                             types (then for --dataset alone).

What is made depends on numpy's PCG64 generator and the fixed random seed only. What exists is left
alone. Needs numpy only.
"""
import os
import shutil
import subprocess
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GRAPHS = os.path.join(ROOT, 'build', 'bench', 'graphs')
POWER_LAW = {'power-law-124m': (2_400_000, 124_000_000), 'power-law-2m': (169_000, 2_300_000)}
SCALES = {'products-60k': 1 / 40, 'products-300k': 1 / 8, 'products': 1}
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


def dataset_of(name):
    """The folder of a graph to import, made unless it is there."""
    if name not in SCALES:
        folder = os.path.join(os.environ.get('GNND_DATASETS', ''), name)
        files = [os.path.join(folder, file) for file in ('indptr.npy', 'types.json')]
        if 'GNND_DATASETS' in os.environ and any(map(os.path.exists, files)):
            return os.path.abspath(folder)
        sys.exit(f'{name} is not made here: name the folder that has {name}/indptr.npy (or types.json) in '
                 f'GNND_DATASETS, or take one of {", ".join(SCALES)}')
    folder = os.path.join(os.path.dirname(GRAPHS), name)
    script = os.path.join(ROOT, 'bench', 'products', 'graph.py')
    command = [sys.executable, script, folder, '--scale', str(SCALES[name])]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return folder


def take(source, folder, names):
    """Files of a dataset into a graph's folder, linked where the file system can."""
    os.makedirs(folder, exist_ok=True)
    for name in names:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            continue
        try:
            os.link(os.path.join(source, name), path)
        except OSError:
            shutil.copyfile(os.path.join(source, name), path)


def products_part(folder):
    whole = dataset_of('products')
    take(whole, folder, [f'{name}.npy' for name in ('indptr', 'indices', 'features', 'labels')])
    splits = {name: np.load(os.path.join(whole, name + '.npy'))[:size]
              for name, size in PART.items()}
    save(folder, splits)


def folder_of(name):
    """The folder of a graph that contestants sample, made unless it is there."""
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
        source = dataset_of(name)
        take(source, folder, sorted(each for each in os.listdir(source) if each.endswith('.npy')))
        indices = np.load(os.path.join(folder, 'indices.npy'), mmap_mode='r')
        train = np.load(os.path.join(folder, 'train.npy'))
    with_seeds_and_weights(folder, len(indices), train)
    return folder


if __name__ == '__main__':
    find = dataset_of if sys.argv[1:2] == ['--dataset'] else folder_of
    graphs = [word for word in sys.argv[1:] if word != '--dataset']
    if not graphs:
        sys.exit(__doc__)
    for graph in graphs:
        print(find(graph))
