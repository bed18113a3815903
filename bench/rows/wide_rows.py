#!/usr/bin/env python3
"""A graph with many labelled nodes and few edges, whose rows are large, as .npy files to import.

usage: wide_rows.py FOLDER NODES COLUMNS

Every node has a label (16 classes, its id modulo 16) and is in a split: of ten, eight train, one validates,
one tests. Four neighbours a node, of its own class or any, at equal odds. A row is its class's centre plus
noise, in float16 (4,096 different rows, so that making them costs little). In chunks, in bounded memory.
"""
import os
import sys

import numpy as np

CLASSES, NEIGHBOURS, KINDS = 16, 4, 4096
CHUNK = 1 << 18


def save(folder, name, values):
    np.save(os.path.join(folder, name + '.npy'), values)


def main():
    folder, nodes, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.makedirs(folder, exist_ok=True)
    random = np.random.default_rng(1)
    ids = np.arange(nodes, dtype=np.int64)
    save(folder, 'indptr', np.arange(nodes + 1, dtype=np.int64) * NEIGHBOURS)
    indices = random.integers(0, nodes, (nodes, NEIGHBOURS))
    own = random.random((nodes, NEIGHBOURS)) < 0.5
    same = np.minimum(indices - indices % CLASSES + (ids % CLASSES)[:, None], nodes - 1)
    save(folder, 'indices', np.where(own, same, indices).astype(np.uint32).reshape(-1))
    save(folder, 'labels', (ids % CLASSES).astype(np.int32))
    for name, low, high in [('train', 0, 8), ('val', 8, 9), ('test', 9, 10)]:
        place = ids // CLASSES % 10
        save(folder, name, ids[(place >= low) & (place < high)].astype(np.uint32))
    kinds = random.standard_normal((KINDS, columns), np.float32)
    kinds += 0.2 * random.standard_normal((CLASSES, columns), np.float32)[np.arange(KINDS) % CLASSES]
    kinds = kinds.astype(np.float16)
    path = os.path.join(folder, 'features.npy')
    features = np.lib.format.open_memmap(path, 'w+', np.float16, (nodes, columns))
    for begin in range(0, nodes, CHUNK):
        end = min(nodes, begin + CHUNK)
        kind = random.integers(0, KINDS // CLASSES, end - begin) * CLASSES + ids[begin:end] % CLASSES
        features[begin:end] = kinds[kind]
    features.flush()


main()
