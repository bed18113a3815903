"""DGL, GraphBolt and torch_geometric as contestants of sampling.py.

usage: sampling_peer.py PEER GRAPH_FOLDER ALGORITHM FANOUTS BATCH THREADS [calls]

PEER: dgl, dgl-i32, graphbolt, graphbolt-i32 (in the dgl environment); pyg-adj, pyg (in the pyg
environment with torch-sparse; uniform only): what torch_geometric's NeighborSampler calls for each
hop, and what its NeighborLoader calls, which expands new nodes only. ALGORITHM: uniform, weighted (by edge_weights.npy,
without replacement), labor, walk (PinSAGE's: 8 walks of 3 steps, restart 0.5, top FANOUT). With
`calls` THREADS Python threads sample batches of their own, else one batch at a time may use THREADS
threads inside. Command: `run FIRST COUNT`.

Every command's first batch is sampled once more and checked outside the clock: each row has
min(fanout, degree) in-neighbours, none more often than the graph has it, ids stay within the node
list, which starts with the destinations and repeats nothing. LABOR's and the walk's row sizes are
their own; what else holds is checked for them, too.
"""
import concurrent.futures
import os
import sys
import time

import numpy as np
import torch

import served

WALKS, STEPS, RESTART = 8, 3, 0.5
CHECKED_ROWS = 200


class Graph:
    def __init__(self, folder, int32, weighted):
        def load(name, dtype):
            return torch.from_numpy(np.load(os.path.join(folder, name)).astype(dtype, copy=False))
        self.dtype = torch.int32 if int32 else torch.int64
        kind = np.int32 if int32 else np.int64
        self.indptr = load('indptr.npy', kind)
        self.indices = load('indices.npy', kind)
        self.seeds = load('seeds.npy', kind)
        self.weights = load('edge_weights.npy', np.float32) if weighted else None

    def batch(self, index, size):
        index %= len(self.seeds) // size
        return self.seeds[index * size:(index + 1) * size]


class Dgl:
    """DGL's own samplers; blocks keep COO, relabelled, with edge ids."""

    def __init__(self, graph, algorithm, fanouts):
        import dgl
        self.dgl, self.fanouts = dgl, fanouts
        # A walk follows edges outward: it is given the same rows as rows of the other direction.
        layout = 'csr' if algorithm == 'walk' else 'csc'
        self.graph = dgl.graph((layout, (graph.indptr, graph.indices, [])), idtype=graph.dtype,
                               num_nodes=len(graph.indptr) - 1).formats(layout)
        outermost_first = fanouts[::-1]
        if algorithm == 'weighted':
            self.graph.edata['w'] = graph.weights
        if algorithm == 'walk':
            self.walks = [dgl.sampling.RandomWalkNeighborSampler(
                self.graph, STEPS, RESTART, WALKS, fanout) for fanout in fanouts]
        elif algorithm == 'labor':
            self.sampler = dgl.dataloading.LaborSampler(outermost_first)
        else:
            prob = 'w' if algorithm == 'weighted' else None
            # DGL's fused path (for two threads and more) corrupts the heap with 32-bit ids.
            fused = graph.dtype == torch.int64
            self.sampler = dgl.dataloading.NeighborSampler(outermost_first, prob=prob, fused=fused)
        self.sample = self.sample_walk if algorithm == 'walk' else self.sample_blocks

    def sample_blocks(self, seeds):
        return self.sampler.sample_blocks(self.graph, seeds)[2][::-1]

    def sample_walk(self, seeds):
        blocks = []
        for walk in self.walks:
            block = self.dgl.to_block(walk(seeds), seeds)
            seeds = block.srcdata[self.dgl.NID]
            blocks.append(block)
        return blocks

    def edges(self, blocks):
        return sum(block.num_edges() for block in blocks)

    def nodes(self, blocks):
        return blocks[-1].num_src_nodes()

    def hops(self, blocks):
        for block in blocks:
            indptr, indices, _ = block.adj_tensors('csc')
            yield (indptr.numpy(), indices.numpy(), block.srcdata[self.dgl.NID].numpy(),
                   block.dstdata[self.dgl.NID].numpy())


class GraphBolt:
    """GraphBolt's sampling and compaction as its SamplePerLayer and CompactPerLayer call them."""

    def __init__(self, graph, algorithm, fanouts):
        if algorithm == 'walk':
            sys.exit('GraphBolt has no such walk')
        import dgl.graphbolt as gb
        attributes = {'w': graph.weights} if algorithm == 'weighted' else None
        self.graph = gb.fused_csc_sampling_graph(graph.indptr, graph.indices,
                                                 edge_attributes=attributes)
        layer = algorithm == 'labor'
        self.sampler = self.graph.sample_layer_neighbors if layer else self.graph.sample_neighbors
        self.probability = 'w' if algorithm == 'weighted' else None
        self.compact = gb.unique_and_compact_csc_formats
        self.fanouts = [torch.LongTensor([fanout]) for fanout in fanouts]

    def sample(self, seeds):
        blocks = []
        for fanout in self.fanouts:
            drawn = self.sampler(seeds, fanout, False, self.probability)
            sources, csc = self.compact(drawn.sampled_csc, seeds)
            blocks.append((csc, sources, seeds))
            seeds = sources
        return blocks

    def edges(self, blocks):
        return sum(len(csc.indices) for csc, _, _ in blocks)

    def nodes(self, blocks):
        return len(blocks[-1][1])

    def hops(self, blocks):
        for csc, sources, seeds in blocks:
            yield csc.indptr.numpy(), csc.indices.numpy(), sources.numpy(), seeds.numpy()


class TorchSparse:
    """torch_geometric's sampling: its NeighborSampler is so many calls of sample_adj."""

    def __init__(self, graph, algorithm, fanouts):
        if algorithm != 'uniform':
            sys.exit(f'torch-sparse cannot sample {algorithm}')
        from torch_sparse import SparseTensor
        nodes = len(graph.indptr) - 1
        self.graph = SparseTensor(rowptr=graph.indptr, col=graph.indices,
                                  sparse_sizes=(nodes, nodes), is_sorted=True, trust_data=True)
        self.fanouts = fanouts

    def sample(self, seeds):
        blocks = []
        for fanout in self.fanouts:
            block, sources = self.graph.sample_adj(seeds, fanout, replace=False)
            blocks.append((block, sources, seeds))
            seeds = sources
        return blocks

    def edges(self, blocks):
        return sum(block.nnz() for block, _, _ in blocks)

    def nodes(self, blocks):
        return len(blocks[-1][1])

    def hops(self, blocks):
        for block, sources, seeds in blocks:
            indptr, local, _ = block.csr()
            yield indptr.numpy(), local.numpy(), sources.numpy(), seeds.numpy()


class TorchSparseNew:
    """What torch_geometric's NeighborLoader calls: a hop expands the nodes that the last one found."""

    def __init__(self, graph, algorithm, fanouts):
        if algorithm != 'uniform':
            sys.exit(f'torch-sparse cannot sample {algorithm}')
        import torch_sparse  # noqa: F401  registers the operator
        self.graph, self.fanouts = graph, fanouts

    def sample(self, seeds):
        nodes, sources, destinations, _ = torch.ops.torch_sparse.neighbor_sample(
            self.graph.indptr, self.graph.indices, seeds, self.fanouts, False, True)
        return nodes, sources, destinations, len(seeds)

    def edges(self, drawn):
        return len(drawn[1])

    def nodes(self, drawn):
        return len(drawn[0])

    def hops(self, drawn):
        """The first hop only: the others' rows are those of new nodes."""
        nodes, sources, destinations = (part.numpy() for part in drawn[:3])
        seeds = drawn[3]
        first = destinations < seeds
        indptr = np.searchsorted(destinations[first], np.arange(seeds + 1))
        yield indptr, sources[first], nodes, nodes[:seeds]


MAKERS = {'dgl': Dgl, 'graphbolt': GraphBolt, 'pyg-adj': TorchSparse, 'pyg': TorchSparseNew}


def verify(graph, algorithm, fanouts, hops, seeds):
    offsets, ids = graph.indptr.numpy(), graph.indices.numpy()
    random = np.random.default_rng(0)
    expected = seeds.numpy()
    for fanout, (indptr, local, sources, destinations) in zip(fanouts, hops):
        assert np.array_equal(destinations, expected), 'destinations are not the nodes so far'
        assert np.array_equal(sources[:len(destinations)], destinations), 'destinations not first'
        assert len(np.unique(sources)) == len(sources), 'a node stands twice'
        assert local.min() >= 0 and local.max() < len(sources), 'a local id is out of range'
        degrees = offsets[destinations.astype(np.int64) + 1] - offsets[destinations]
        if algorithm in ('uniform', 'weighted'):
            assert np.array_equal(np.diff(indptr), np.minimum(degrees, fanout)), 'row sizes'
        for row in random.integers(0, len(destinations), CHECKED_ROWS):
            drawn = sources[local[indptr[row]:indptr[row + 1]]]
            if algorithm == 'walk':
                assert len(np.unique(drawn)) == len(drawn) <= fanout, 'walk row'
                continue
            node = int(destinations[row])
            present, counts = np.unique(ids[offsets[node]:offsets[node + 1]], return_counts=True)
            names, times = np.unique(drawn, return_counts=True)
            at = np.minimum(np.searchsorted(present, names), len(present) - 1)
            assert (present[at] == names).all() and (counts[at] >= times).all(), 'row content'
        expected = sources


def main():
    peer, folder, algorithm = sys.argv[1:4]
    fanouts = [int(fanout) for fanout in sys.argv[4].split(',')]
    batch_size, threads = int(sys.argv[5]), int(sys.argv[6])
    calls = sys.argv[7:] == ['calls']
    torch.set_num_threads(1 if calls else threads)
    torch.manual_seed(1)
    graph = Graph(folder, peer.endswith('-i32'), algorithm == 'weighted')
    made = MAKERS[peer.removesuffix('-i32')](graph, algorithm, fanouts)
    pool = concurrent.futures.ThreadPoolExecutor(threads) if calls else None

    def sample(index):
        seeds = graph.batch(index, batch_size)
        cpu, begin = time.thread_time_ns(), time.perf_counter_ns()
        blocks = made.sample(seeds)
        edges, nodes = made.edges(blocks), made.nodes(blocks)
        del blocks  # giving memory back is part of a batch
        return time.perf_counter_ns() - begin, time.thread_time_ns() - cpu, edges, nodes

    def answer(words):
        first, count = int(words[1]), int(words[2])
        seeds = graph.batch(first, batch_size)
        verify(graph, algorithm, fanouts, made.hops(made.sample(seeds)), seeds)
        begin = time.perf_counter_ns()
        indices = range(first, first + count)
        results = list((pool.map if calls else map)(sample, indices))
        wall = time.perf_counter_ns() - begin
        ns, cpu_ns, edges, nodes = zip(*results)
        return {'wall_ns': wall, 'ns': ns, 'cpu_ns': cpu_ns, 'edges': edges, 'nodes': nodes}

    answer(('run', 0, 2))
    served.serve({'peer': peer}, answer)


if __name__ == '__main__':
    main()
