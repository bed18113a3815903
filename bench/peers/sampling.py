#!/usr/bin/env python3
"""Sampling, deduplicating and relabelling a batch: gnnd beside DGL, GraphBolt and torch_geometric.

usage: sampling.py [--graphs power-law-124m,power-law-2m,products-300k] [--algorithm uniform]
                   [--fanouts 15,10,5] [--batch 1024] [--threads 1] [--rounds 9] [--batches 4]
                   [--peers dgl,dgl-i32,graphbolt,graphbolt-i32,pyg-adj,pyg]
                   [--settings tuned,default]

All contestants sample the same seeds from the same CSC, in turns: each round every one of them does
`batches` batches; the first round warms up and is not counted. Expansion is DGL's for all: every
node so far is expanded at each hop. With --threads 2 gnnd samples two batches at once; peers do
that (`calls`) and use two threads inside a batch (`inside`). Peers run with a malloc that keeps its
memory and uses 2 MiB pages and with OpenMP threads that do not spin (`tuned`), and as they come
(`default`).

Two figures are gnnd's: into warm slots, as its Sampler runs in the daemon, and into memory newly
mapped for every batch (`fresh`). Ratios are to the best peer of the row; where peers differ in id
width the width stands in the name. One JSON line per contestant in build/bench/peers-sampling.jsonl.
"""
import argparse
import os
import sys

import graphs
import served

# Contestants whose batches are not the others'.
OWN_EXPANSION = 'pyg '

# Each measure's ratio is to the peer that is best by that measure.
RATIOS = {'million_edges_per_second': 'ratio_to_best_peer',
          'million_edges_per_cpu_second': 'cpu_ratio_to_best_peer',
          'batches_per_second': 'batch_ratio_to_best_peer'}


def contestants_of(options, folder):
    binary = os.path.join(served.ROOT, 'build', 'native', 'graph_sampler_bench')
    ours = [binary, folder, '--fanouts', options.fanouts, '--batch', str(options.batch),
            '--threads', str(options.threads), *gnnd_algorithm(options.algorithm)]
    gnnd = served.Contestant('gnnd', ours, 1)
    peers = []
    for setting in options.settings.split(','):
        env = served.TUNED if setting == 'tuned' else {}
        for peer in options.peers.split(','):
            for mode in ('calls', 'inside') if options.threads > 1 else ('',):
                command = [served.peer_python('pyg' if peer.startswith('pyg') else 'dgl'), os.path.join(served.HERE, 'sampling_peer.py'),
                           peer, folder, options.algorithm, options.fanouts, str(options.batch),
                           str(options.threads), *(['calls'] if mode == 'calls' else [])]
                threads = 1 if mode == 'calls' else options.threads
                name = ' '.join(part for part in (peer, mode, setting) if part)
                peers.append(served.Contestant(name, command, threads, env))
    return gnnd, peers


def gnnd_algorithm(algorithm):
    if algorithm == 'uniform':
        return []
    return ['--algorithm', algorithm]


def run_rounds(options, gnnd, peers):
    """{name: answers of the counted rounds}"""
    turns = [('gnnd', gnnd, 'warm'), ('gnnd fresh', gnnd, 'fresh'),
             *((peer.name, peer, 'run') for peer in peers)]
    answers = {name: [] for name, _, _ in turns}
    for number in range(options.rounds + 1):
        shift = number % len(turns)  # nobody always follows the same neighbour
        for name, contestant, command in turns[shift:] + turns[:shift]:
            answer = contestant.ask(f'{command} {number * options.batches} {options.batches}')
            if number > 0:
                answers[name].append(answer)
    return answers


def summary(answers, threads):
    batches = [batch for answer in answers
               for batch in zip(answer['ns'], answer['cpu_ns'], answer['edges'], answer['nodes'])]
    if threads == 1:
        rates = [edges / ns * 1e3 for ns, _, edges, _ in batches]
        batch_ms = [ns / 1e6 for ns, _, _, _ in batches]
    else:
        rates = [sum(answer['edges']) / answer['wall_ns'] * 1e3 for answer in answers]
        batch_ms = [answer['wall_ns'] / 1e6 / len(answer['ns']) for answer in answers]
    # Of the thread that samples: what threads inside a batch use is not in it.
    cpu_rates = [edges / cpu_ns * 1e3 for _, cpu_ns, edges, _ in batches] if threads == 1 else [0]
    return {'million_edges_per_second': round(served.median(rates), 3),
            'million_edges_per_cpu_second': round(served.median(cpu_rates), 3),
            'p5': round(served.quantile(rates, 0.05), 3),
            'p95': round(served.quantile(rates, 0.95), 3),
            'batches_per_second': round(1e3 / served.median(batch_ms), 2),
            'batches': len(batches),
            'edges': round(sum(batch[2] for batch in batches) / len(batches)),
            'nodes': round(sum(batch[3] for batch in batches) / len(batches))}


def check_same_work(options, lines):
    """Uniform samples differ by their draws only, so their edges agree closely."""
    if options.algorithm != 'uniform':
        return
    edges = [line['edges'] for line in lines if not line['name'].startswith(OWN_EXPANSION)]
    if max(edges) > 1.02 * min(edges):
        sys.exit(f'contestants do not do the same work: edges per batch {edges}')


def report(options, graph, answers):
    setting = {'bench': 'peers-sampling', 'graph': graph, 'algorithm': options.algorithm,
               'fanouts': options.fanouts, 'batch': options.batch, 'threads': options.threads,
               **served.facts()}
    lines = [{**setting, 'name': name, **summary(found, options.threads)}
             for name, found in answers.items()]
    check_same_work(options, lines)
    peers = [line for line in lines if not line['name'].startswith('gnnd')]
    for measure, ratio in RATIOS.items():
        same = [line for line in peers if measure != 'batches_per_second'
                or not line['name'].startswith(OWN_EXPANSION)]
        best = max((line[measure] for line in same), default=lines[0][measure]) or 1
        for line in lines:
            line[ratio] = round(line[measure] / best, 2)
    print(f"\n{graph} {options.algorithm} [{options.fanouts}] x {options.batch}, "
          f"{options.threads} thread(s), {lines[0]['batches']} batches, load {setting['load']}")
    print(f"{'':30} {'M edges/s':>10} {'p5':>8} {'p95':>8} {'batches/s':>10} {'edges':>9} "
          f"{'nodes':>9} {'x best peer':>12} {'by batches':>11} {'by CPU time':>12}")
    for line in sorted(lines, key=lambda line: -line['million_edges_per_second']):
        print(f"{line['name']:30} {line['million_edges_per_second']:10.2f} {line['p5']:8.2f} "
              f"{line['p95']:8.2f} {line['batches_per_second']:10.1f} {line['edges']:9} "
              f"{line['nodes']:9} {line['ratio_to_best_peer']:12.2f} "
              f"{line['batch_ratio_to_best_peer']:11.2f} {line['cpu_ratio_to_best_peer']:12.2f}",
              flush=True)
    served.write_lines('peers-sampling', lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--graphs', default='power-law-124m,power-law-2m,products-300k')
    parser.add_argument('--algorithm', default='uniform',
                        choices=('uniform', 'weighted', 'labor', 'walk'))
    parser.add_argument('--fanouts', default='15,10,5')
    parser.add_argument('--batch', type=int, default=1024)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=9)
    parser.add_argument('--batches', type=int, default=4)
    parser.add_argument('--peers', default='dgl,dgl-i32,graphbolt,graphbolt-i32,pyg-adj,pyg')
    parser.add_argument('--settings', default='tuned,default')
    options = parser.parse_args()
    for graph in options.graphs.split(','):
        gnnd, peers = contestants_of(options, graphs.folder_of(graph))
        gnnd.wait_until_ready()
        peers = served.start(peers)
        report(options, graph, run_rounds(options, gnnd, peers))
        for contestant in (gnnd, *peers):
            contestant.close()


if __name__ == '__main__':
    main()
