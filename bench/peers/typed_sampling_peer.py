"""torch_geometric as a contestant of typed_sampling.py: what its NeighborLoader calls a batch.

usage: typed_sampling_peer.py GRAPH_FOLDER FANOUTS BATCH    (in the pyg environment, with pyg-lib)

Command: `run FIRST COUNT`.
"""
import os
import sys
import time

import numpy as np
import torch
from torch_geometric.data import HeteroData
from torch_geometric.sampler import NeighborSampler, NodeSamplerInput

import served
from typed_sampling import read_schema


def data_of(folder):
    types, relations = read_schema(folder)
    data = HeteroData()
    for name, nodes in types:
        data[name].num_nodes = nodes
    for source, name, destination, _ in relations:
        triple = types[source][0], name, types[destination][0]
        edges = os.path.join(folder, 'edges', '__'.join(triple))
        indptr = np.load(os.path.join(edges, 'indptr.npy'))
        indices = np.load(os.path.join(edges, 'indices.npy'))
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        data[triple].edge_index = torch.from_numpy(np.stack([indices.astype(np.int64), rows]))
    return data, types[0][0]


def main():
    folder, batch_size = sys.argv[1], int(sys.argv[3])
    torch.set_num_threads(1)
    torch.manual_seed(1)
    data, target = data_of(folder)
    sampler = NeighborSampler(data, [int(fanout) for fanout in sys.argv[2].split(',')])
    seeds = torch.from_numpy(np.load(os.path.join(folder, 'seeds.npy')))
    batches = len(seeds) // batch_size

    def sample(index):
        begin = index % batches * batch_size
        given = NodeSamplerInput(None, seeds[begin:begin + batch_size], input_type=target)
        cpu, start = time.thread_time_ns(), time.perf_counter_ns()
        drawn = sampler.sample_from_nodes(given)
        edges = sum(len(row) for row in drawn.row.values() if row is not None)
        nodes = sum(len(ids) for ids in drawn.node.values())
        del drawn  # giving memory back is part of a batch
        return time.perf_counter_ns() - start, time.thread_time_ns() - cpu, edges, nodes

    def answer(words):
        first, count = int(words[1]), int(words[2])
        ns, cpu_ns, edges, nodes = zip(*map(sample, range(first, first + count)))
        return {'ns': ns, 'cpu_ns': cpu_ns, 'edges': edges, 'nodes': nodes}

    sample(0)
    served.serve({}, answer)


if __name__ == '__main__':
    main()
