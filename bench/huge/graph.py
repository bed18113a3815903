#!/usr/bin/env python3
"""A graph of the shape of ogbn-papers100M that can be learnt, as .npy files to import.

usage: graph.py FOLDER [--scale 1.0] [--train 1.0]

111,059,956 nodes, about 1,615,685,872 entries (uint32), 128 features in float16, 172 classes, 1,207,179
training, 125,265 validation and 214,338 test nodes; all other nodes have no label (all times --scale; those of the splits times --train, too).
Degrees are Pareto-distributed (shape 1.95, cut at 390 times the mean). An entry's source is skewed, too:
half of all entries name the most popular eighth of the nodes, and 60 % a node of the row's own class, which
is its id modulo 172; popular ids are spread over the whole range. A feature row is one of 1,024 rows of
its class, a centre plus unit noise. Made in chunks, in a bounded 0.7 GB of memory whatever the scale; needs
numpy and, at scale 1, 36 GB of disk. Depends on numpy's PCG64 generator and the fixed random seed only.
What exists of the same scale and share is left alone.
"""
import argparse
import math
import os
import shutil
import sys

import numpy as np

RANDOM_SEED = 20170611
NODES, ENTRIES, FEATURES, CLASSES = 111_059_956, 1_615_685_872, 128, 172
TRAIN, VAL, TEST = 1_207_179, 125_265, 214_338
SHAPE, CUT = 1.95, 390
HOMOPHILY, SIGNAL = 0.6, 0.35
SKEW = 3  # a source's place in the order of popularity is uniform^SKEW
ROWS_PER_CLASS = 1024
CHUNK = 1 << 22  # nodes or entries at a time


class Array:
    """A .npy file that is written piece by piece; the header is put in at the end."""

    def __init__(self, folder, name, dtype, columns=None):
        self.file = open(os.path.join(folder, name + '.npy'), 'wb')
        self.dtype, self.columns, self.rows = np.dtype(dtype), columns, 0
        self.header(0)

    def header(self, rows):
        shape = (rows,) if self.columns is None else (rows, self.columns)
        fields = {'descr': self.dtype.str, 'fortran_order': False, 'shape': shape}
        self.file.seek(0)
        np.lib.format.write_array_header_1_0(self.file, fields)

    def append(self, values):
        values = np.ascontiguousarray(values, self.dtype)
        self.file.write(values.data)
        self.rows += len(values)

    def end(self):
        self.header(self.rows)
        self.file.close()


def degrees(random, count, mean):
    """Whole numbers of about this mean, Pareto-distributed with a cut."""
    weights = np.minimum((1 - random.random(count)) ** (-1 / SHAPE), CUT * SHAPE / (SHAPE - 1))
    # The mean of what is cut off at c is (a - c^(1-a)) / (a - 1).
    expected = (SHAPE - (CUT * SHAPE / (SHAPE - 1)) ** (1 - SHAPE)) / (SHAPE - 1)
    return np.floor(weights * (mean / expected) + random.random(count)).astype(np.int64)


def sources(random, nodes, rows):
    """A source for each entry, given the row that it stands in."""
    step = next(p for p in range(int(nodes * 0.618), nodes) if math.gcd(p, nodes) == 1)
    place = (random.random(len(rows)) ** SKEW * nodes).astype(np.int64)
    node = place * step % nodes
    same = node - node % CLASSES + rows % CLASSES
    takes_same = (random.random(len(rows)) < HOMOPHILY) & (same < nodes)
    return np.where(takes_same, same, node)


def topology(folder, random, nodes, mean):
    indptr, indices = Array(folder, 'indptr', np.int64), Array(folder, 'indices', np.uint32)
    indptr.append(np.zeros(1))
    entries = 0
    for begin in range(0, nodes, CHUNK):
        count = degrees(random, min(CHUNK, nodes - begin), mean)
        indptr.append(entries + np.cumsum(count))
        entries += int(count.sum())
        for first in range(0, len(count), CHUNK // 16):
            some = count[first:first + CHUNK // 16]
            rows = np.repeat(np.arange(begin + first, begin + first + len(some)), some)
            indices.append(sources(random, nodes, rows))
    indptr.end()
    indices.end()


def features(folder, random, nodes):
    centres = random.standard_normal((CLASSES, 1, FEATURES), np.float32) * np.float32(SIGNAL)
    noise = random.standard_normal((CLASSES, ROWS_PER_CLASS, FEATURES), np.float32)
    pool = (centres + noise).astype(np.float16).reshape(-1, FEATURES)
    table = Array(folder, 'features', np.float16, FEATURES)
    for begin in range(0, nodes, CHUNK // 8):
        ids = np.arange(begin, min(begin + CHUNK // 8, nodes))
        picked = random.integers(0, ROWS_PER_CLASS, len(ids))
        table.append(pool[ids % CLASSES * ROWS_PER_CLASS + picked])
    table.end()


def splits(folder, random, nodes, scale, train):
    """Nodes of the three splits, disjoint; only they have labels."""
    sizes = [max(1, int(size * scale)) for size in (TRAIN * train, VAL * train, TEST * train)]
    drawn = np.unique(random.integers(0, nodes, int(1.1 * sum(sizes)) + 64))
    drawn = random.permutation(drawn)[:sum(sizes)]
    for name, part in zip(('train', 'val', 'test'), np.split(drawn, np.cumsum(sizes)[:-1])):
        ids = Array(folder, name, np.uint32)
        ids.append(np.sort(part))
        ids.end()
    drawn.sort()
    labels = Array(folder, 'labels', np.int32)
    for begin in range(0, nodes, CHUNK):
        end = min(begin + CHUNK, nodes)
        some = np.full(end - begin, -1, np.int32)
        known = drawn[np.searchsorted(drawn, begin):np.searchsorted(drawn, end)]
        some[known - begin] = known % CLASSES
        labels.append(some)
    labels.end()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('folder')
    parser.add_argument('--scale', type=float, default=1.0)
    parser.add_argument('--train', type=float, default=1.0)
    options = parser.parse_args()
    nodes = int(NODES * options.scale)
    mark = os.path.join(options.folder, 'made')
    asked = f'{options.scale} {options.train}'
    if os.path.exists(mark) and open(mark).read() == asked:
        return
    print(f'making a graph of {nodes:,} nodes', file=sys.stderr, flush=True)
    shutil.rmtree(options.folder, ignore_errors=True)
    os.makedirs(options.folder)
    random = np.random.default_rng(RANDOM_SEED)
    topology(options.folder, random, nodes, ENTRIES / NODES)
    features(options.folder, random, nodes)
    splits(options.folder, random, nodes, options.scale, options.train)
    with open(mark, 'w') as file:
        file.write(asked)


if __name__ == '__main__':
    main()
