#!/usr/bin/env python3
"""A dataset's folder with its nodes sorted by label: what rows must be permuted against.

usage: sort_by_label.py FOLDER OUT
"""
import os
import sys

import numpy


def main(folder, out):
    load = lambda name: numpy.load(os.path.join(folder, f'{name}.npy'))
    save = lambda name, values: numpy.save(os.path.join(out, f'{name}.npy'), values)
    os.makedirs(out)
    indptr, indices, labels = load('indptr'), load('indices'), load('labels')
    order = numpy.argsort(labels, kind='stable')     # the old id of each new one
    place = numpy.empty(len(order), dtype=indices.dtype)
    place[order] = numpy.arange(len(order), dtype=indices.dtype)
    degrees = numpy.diff(indptr)[order]
    starts = numpy.concatenate([[0], numpy.cumsum(degrees)]).astype(indptr.dtype)
    rows = [numpy.sort(place[indices[indptr[v]:indptr[v + 1]]]) for v in order]
    save('indptr', starts)
    save('indices', numpy.concatenate(rows))
    save('features', load('features')[order])
    save('labels', labels[order])
    for split in ('train', 'val', 'test'):
        save(split, numpy.sort(place[load(split)].astype(numpy.int64)))


if __name__ == '__main__':
    main(*sys.argv[1:3])
