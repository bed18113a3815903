#!/usr/bin/env python3
"""Feature propagation by torch.sparse: what bench/propagate/run.mjs compares with.

usage: torch_sparse.py FOLDER OUT HOPS THREADS ROUNDS

The same work as gnnd's: hops of the symmetric operator with self-loops, rows of labelled nodes
written as .npy after each hop. Prints a JSON line: seconds of each round, and bytes a second that
a copy of a large tensor reads and writes here.
"""
import json
import os
import sys
import time

import numpy
import torch


def main(folder, out, hops, threads, rounds):
    torch.set_num_threads(threads)
    load = lambda name: numpy.load(os.path.join(folder, f'{name}.npy'), mmap_mode='r')
    indptr, indices = load('indptr').astype(numpy.int64), load('indices').astype(numpy.int64)
    features = torch.from_numpy(numpy.array(load('features'), dtype=numpy.float32))
    kept = torch.from_numpy(numpy.concatenate([load(name) for name in ('train', 'val', 'test')]))
    nodes = len(indptr) - 1
    rows = numpy.repeat(numpy.arange(nodes), numpy.diff(indptr))
    loops = numpy.arange(nodes)
    rows, columns = numpy.concatenate([rows, loops]), numpy.concatenate([indices, loops])
    scale = 1 / numpy.sqrt(numpy.diff(indptr) + 1.0)
    weights = (scale[rows] * scale[columns]).astype(numpy.float32)
    matrix = torch.sparse_coo_tensor(numpy.stack([rows, columns]), weights, (nodes, nodes))
    matrix = matrix.coalesce().to_sparse_csr()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        state = features
        for hop in range(hops + 1):
            if hop > 0:
                state = matrix @ state
            with open(os.path.join(out, f'hop{hop}.npy'), 'wb') as file:
                numpy.save(file, state[kept].numpy())
                file.flush()
                os.fsync(file.fileno())
        seconds.append(time.perf_counter() - start)
    source, target = torch.ones(1 << 27), torch.empty(1 << 27)
    copies = []
    for _ in range(5):
        start = time.perf_counter()
        target.copy_(source)
        copies.append(2 * 4 * len(source) / (time.perf_counter() - start))
    print(json.dumps({'seconds': seconds, 'copyBytesPerSecond': max(copies)}))


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]))
