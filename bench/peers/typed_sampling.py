#!/usr/bin/env python3
"""Sampling a batch of a graph of ogbn-mag's shape: gnnd beside torch_geometric (pyg-lib).

usage: typed_sampling.py [--fanouts 10,10] [--batch 1024] [--rounds 9] [--batches 20]

The graph, made in build/bench/graphs/typed-mag, has the types and relations of ogbn-mag with as
many nodes and edges, and the reverses: 1.9 M nodes of 4 types, 42 M edges of 8 relations. Both ends
of an edge are drawn, some nodes far more often than others (the square of a uniform number); an
edge may repeat. Both contestants sample the same seeds, papers, in turns, on one thread: each round
both do `batches` batches; the first round warms up and is not counted. A hop expands the nodes that
the last one found, for both. Printed are medians over batches, and of the rounds' ratios of
processor time and of wall time. One JSON line in build/bench/peers-typed-sampling.jsonl.
"""
import argparse
import os
import sys

import numpy as np

import served

FOLDER = os.path.join(served.ROOT, 'build', 'bench', 'graphs', 'typed-mag')
TYPES = [('paper', 736_389), ('author', 1_134_649), ('institution', 8_740), ('field', 59_965)]
RELATIONS = [(1, 'writes', 0, 7_145_660), (0, 'cites', 0, 5_416_271),
             (0, 'has_topic', 3, 7_505_078), (1, 'affiliated_with', 2, 1_043_998)]
RANDOM_SEED = 20261128


def read_schema(folder):
    """[(name, nodes)], [(source, name, destination, edges)]"""
    types, relations = [], []
    with open(os.path.join(folder, 'schema.txt')) as file:
        for line in file:
            kind, *words = line.split()
            if kind == 'type':
                types.append((words[0], int(words[1])))
            else:
                relations.append((int(words[0]), words[1], int(words[2]), int(words[3])))
    return types, relations


def save_relation(folder, types, source, name, destination, ends):
    """Stores edges, int64 [2, E] of sources and destinations, by destination."""
    edges = os.path.join(folder, 'edges', f'{types[source][0]}__{name}__{types[destination][0]}')
    os.makedirs(edges)
    order = np.argsort(ends[1] * types[source][1] + ends[0])
    degrees = np.bincount(ends[1], minlength=types[destination][1])
    np.save(os.path.join(edges, 'indptr.npy'), np.concatenate([[0], np.cumsum(degrees)]))
    np.save(os.path.join(edges, 'indices.npy'), ends[0][order].astype(np.int32))
    return f'relation {source} {name} {destination} {len(order)}\n'


def make(folder, part=1):
    """`part` 4: a quarter as many nodes and edges."""
    if os.path.exists(os.path.join(folder, 'schema.txt')):
        return
    random = np.random.default_rng(RANDOM_SEED)
    types = [(name, nodes // part) for name, nodes in TYPES]
    lines = [f'type {name} {nodes}\n' for name, nodes in types]
    for source, name, destination, count in RELATIONS:
        ends = []
        for nodes in (types[source][1], types[destination][1]):
            skewed = (random.random(count // part) ** 2 * nodes).astype(np.int64)
            ends.append(random.permutation(nodes)[skewed])
        lines.append(save_relation(folder, types, source, name, destination, ends))
        lines.append(save_relation(folder, types, destination, f'rev_{name}', source,
                                   ends[::-1]))
    np.save(os.path.join(folder, 'seeds.npy'), random.permutation(types[0][1]))
    with open(os.path.join(folder, 'schema.txt'), 'w') as file:
        file.writelines(lines)


def run_rounds(options, contestants):
    for number in range(options.rounds + 1):
        turns = contestants if number % 2 == 0 else contestants[::-1]
        for contestant in turns:
            answer = contestant.ask(f'run {number * options.batches} {options.batches}')
            if number > 0:
                contestant.answers.append(answer)


def report(options, contestants):
    line = {'bench': 'peers-typed-sampling', 'fanouts': options.fanouts, 'batch': options.batch,
            **served.facts()}
    for contestant in contestants:
        for measure in ('ns', 'cpu_ns', 'edges', 'nodes'):
            values = [value for answer in contestant.answers for value in answer[measure]]
            line[f'{contestant.name}_{measure}'] = served.median(values)
    ours, peer = contestants
    for measure in ('ns', 'cpu_ns'):
        line[f'ratio_{measure}'] = round(served.median(
            [sum(theirs[measure]) / sum(own[measure])
             for own, theirs in zip(ours.answers, peer.answers)]), 2)
    for contestant in contestants:
        print(f"{contestant.name:16} {line[contestant.name + '_cpu_ns'] / 1e6:8.2f} ms of "
              f"processor time, {line[contestant.name + '_ns'] / 1e6:8.2f} ms, "
              f"{line[contestant.name + '_edges']:.0f} edges, "
              f"{line[contestant.name + '_nodes']:.0f} nodes")
    print(f"torch_geometric takes {line['ratio_cpu_ns']} times the processor time and "
          f"{line['ratio_ns']} times the time")
    served.write_lines('peers-typed-sampling', [line])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--fanouts', default='10,10')
    parser.add_argument('--batch', type=int, default=1024)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--batches', type=int, default=20)
    options = parser.parse_args()
    make(FOLDER)
    binary = os.path.join(served.ROOT, 'build', 'native', 'typed_sampler_bench')
    contestants = served.start([
        served.Contestant('gnnd', [binary, FOLDER, '--fanouts', options.fanouts,
                                   '--batch', str(options.batch)]),
        served.Contestant('torch_geometric', [
            served.peer_python('pyg'), os.path.join(served.HERE, 'typed_sampling_peer.py'), FOLDER,
            options.fanouts, str(options.batch)], 1, served.TUNED)])
    if len(contestants) < 2:
        sys.exit('both contestants are needed')
    run_rounds(options, contestants)
    report(options, contestants)
    for contestant in contestants:
        contestant.close()


if __name__ == '__main__':
    main()
