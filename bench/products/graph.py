#!/usr/bin/env python3
"""A graph of the size of ogbn-products that can be learnt, as .npy files to import.

usage: graph.py FOLDER [--scale 1.0] [--links 0]

2,449,029 nodes, 123,718,280 entries, 100 features, 47 classes, 8 % training, 2 % validation and 90 % test
nodes, as ogbn-products has them (all times --scale). Degrees are Pareto-distributed (shape 1.95, cut at 390
times the mean: median degree 36); classes have Zipf-like sizes; 60 % of a row's entries are drawn from its
class, in proportion to their degree, the others from all nodes; ids are in random order. Features are a class
centre times 0.35 plus unit noise, and every tenth label is of a random class, so that 90 % is about the
best that can be reached. Rows are in-neighbours. Depends on numpy's PCG64 generator and the fixed random
seed only. With --links, so many of the edges are training links (links/train.npy) and 50,000 each validation
and test links, which the graph then lacks, each pair once, whatever its direction. What exists is left
alone. Needs numpy only, and some 4 GB of memory.
"""
import argparse
import os
import sys

import numpy as np

RANDOM_SEED = 20161224
NODES, ENTRIES, FEATURES, CLASSES = 2_449_029, 123_718_280, 100, 47
TRAIN, VAL = 196_615, 39_323
SHAPE, CUT = 1.95, 390
HOMOPHILY, SIGNAL, WRONG = 0.6, 0.35, 0.1
CHUNK = 8_000_000
JUDGED_LINKS = 50_000


def graph(random, classes, num_entries):
    n = len(classes)
    weights = np.minimum((1 - random.random(n)) ** (-1 / SHAPE), CUT * SHAPE / (SHAPE - 1))
    indptr = np.zeros(n + 1, np.int64)
    indptr[1:] = np.cumsum(weights) / weights.sum() * num_entries
    indptr[-1] = num_entries
    # Every node as often as it has entries: a uniform draw from it is one in proportion to degree.
    owner = np.repeat(np.arange(n, dtype=np.int32), np.diff(indptr))
    order = np.argsort(classes, kind='stable').astype(np.int32)
    by_class = np.repeat(order, np.diff(indptr)[order])
    sizes = np.bincount(classes, np.diff(indptr), CLASSES).astype(np.int64)
    starts = np.r_[0, np.cumsum(sizes)[:-1]]
    indices = np.empty(num_entries, np.int32)
    for begin in range(0, num_entries, CHUNK):
        end = min(begin + CHUNK, num_entries)
        own = classes[owner[begin:end]]
        uniform = random.random(end - begin)
        inside = by_class[starts[own] + (uniform * sizes[own]).astype(np.int64)]
        outside = owner[(uniform * num_entries).astype(np.int64)]
        indices[begin:end] = np.where(random.random(end - begin) < HOMOPHILY, inside, outside)
    return indptr, indices


def save_links(folder, count):
    to = os.path.join(folder, 'links')
    if os.path.exists(os.path.join(to, 'test.npy')):
        return
    os.makedirs(to, exist_ok=True)
    random = np.random.default_rng(RANDOM_SEED + 1)
    indptr = np.load(os.path.join(folder, 'indptr.npy'))
    indices = np.load(os.path.join(folder, 'indices.npy'), mmap_mode='r')
    # Some more than are wanted: loops and pairs that are there twice are left out.
    wanted = count + 2 * JUDGED_LINKS
    places = np.unique(random.integers(0, len(indices), int(1.2 * wanted)))
    rows = np.searchsorted(indptr, places, side='right') - 1
    pairs = np.stack([indices[places].astype(np.int64), rows])
    low, high = pairs.min(0), pairs.max(0)
    _, first = np.unique(low * (len(indptr) - 1) + high, return_index=True)
    first = random.permutation(first[low[first] != high[first]])[:wanted]
    if len(first) < wanted:
        sys.exit(f'graph.py: --links {count} is more than the graph has')
    train, val, test = np.split(pairs[:, first].astype(np.int32), [count, count + JUDGED_LINKS], 1)
    leave_out(folder, indptr, indices, np.concatenate([val, test], 1))
    for name, links in [('train', train), ('val', val), ('test', test)]:
        np.save(os.path.join(to, name + '.npy'), links)


def leave_out(folder, indptr, indices, links):
    """Takes what judges a model out of the graph, in both directions."""
    num_nodes = len(indptr) - 1
    low, high = links.astype(np.int64).min(0), links.astype(np.int64).max(0)
    gone = np.unique(low * num_nodes + high)
    kept = np.ones(len(indices), bool)
    for begin in range(0, len(indices), CHUNK):
        sources = indices[begin:begin + CHUNK].astype(np.int64)
        places = np.arange(begin, begin + len(sources))
        rows = np.searchsorted(indptr, places, side='right') - 1
        keys = np.minimum(sources, rows) * num_nodes + np.maximum(sources, rows)
        at = np.minimum(np.searchsorted(gone, keys), len(gone) - 1)
        kept[begin:begin + len(sources)] = gone[at] != keys
    counts = np.concatenate([[0], np.cumsum(kept)])
    left = np.asarray(indices)[kept]
    np.save(os.path.join(folder, 'indptr.npy'), counts[indptr].astype(np.int64))
    np.save(os.path.join(folder, 'indices.npy'), left)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('folder')
    parser.add_argument('--scale', type=float, default=1.0)
    parser.add_argument('--links', type=int, default=0)
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.folder, 'test.npy')):
        save_graph(options)
    if options.links > 0:
        save_links(options.folder, options.links)


def save_graph(options):
    n, e = int(NODES * options.scale), int(ENTRIES * options.scale)
    print(f'making a graph of {n:,} nodes and {e:,} entries', file=sys.stderr, flush=True)
    os.makedirs(options.folder, exist_ok=True)
    random = np.random.default_rng(RANDOM_SEED)
    share = 1 / np.arange(1, CLASSES + 1)
    classes = random.choice(CLASSES, n, p=share / share.sum())

    def save(name, array):
        np.save(os.path.join(options.folder, name + '.npy'), array)

    indptr, indices = graph(random, classes, e)
    save('indptr', indptr)
    save('indices', indices)
    del indices
    centres = random.standard_normal((CLASSES, FEATURES), dtype=np.float32) * np.float32(SIGNAL)
    features = random.standard_normal((n, FEATURES), dtype=np.float32)
    for begin in range(0, n, CHUNK // FEATURES):
        end = min(begin + CHUNK // FEATURES, n)
        features[begin:end] += centres[classes[begin:end]]
    save('features', features)
    wrong = random.random(n) < WRONG
    save('labels', np.where(wrong, random.integers(0, CLASSES, n), classes).astype(np.int32))
    order = random.permutation(n)
    train, val = int(TRAIN * options.scale), int(VAL * options.scale)
    save('train', np.sort(order[:train]))
    save('val', np.sort(order[train:train + val]))
    save('test', np.sort(order[train + val:]))


if __name__ == '__main__':
    main()
