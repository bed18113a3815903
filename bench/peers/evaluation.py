#!/usr/bin/env python3
"""Exact evaluation of GraphSAGE on a large graph: gnnd beside DGL's and torch_geometric's.

usage: evaluation.py [--nodes 2449029] [--edges 123718280] [--features 100] [--hidden 256]
                     [--classes 47] [--layers 3] [--threads 2] [--budgets 8589934592,1073741824]
                     [--rounds 3] [--peer-rounds 1] [--peers dgl-batches,dgl-whole,pyg-whole]

evaluation_bench makes the graph and evaluates it once for each budget; where hidden rows exceed it
they lie in a file. Peers get the same graph, features and parameters, and as many threads; their
logits must agree to 1e-3 of the largest. One after another, each alone, since each takes most of a
small host's memory. One JSON line each in build/bench/evaluation.jsonl.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys

import served

SIZES = ('nodes', 'edges', 'features', 'hidden', 'classes', 'layers', 'rounds')


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split('\n', 1)[0])
    for name, default in zip(SIZES, (2_449_029, 123_718_280, 100, 256, 47, 3, 3)):
        parser.add_argument(f'--{name}', type=int, default=default)
    parser.add_argument('--threads', type=int, default=2)
    parser.add_argument('--budgets', default='8589934592,1073741824')
    parser.add_argument('--peer-rounds', type=int, default=1)
    parser.add_argument('--peers', default='dgl-batches,dgl-whole,pyg-whole')
    return parser.parse_args(arguments)


def last_line(command, env, folder):
    run = subprocess.run(command, env=env, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(run.stdout)
    if run.returncode != 0:
        sys.exit(f'{command[0]} ended with {run.returncode}')
    return json.loads(run.stdout.strip().split('\n')[-1])


def gnnd(options, budget, dump, folder):
    command = [os.path.join(served.ROOT, 'build', 'native', 'evaluation_bench'),
               '--trainers', str(options.threads), '--budget', budget, '--dump', dump]
    for name in SIZES:
        command += [f'--{name}', str(getattr(options, name))]
    return last_line(command, {**os.environ, 'OMP_NUM_THREADS': '1'}, folder)


def peer(options, name, dump, folder):
    command = [served.peer_python(name.split('-')[0]), '-W', 'ignore',
               os.path.join(served.HERE, 'evaluation_peer.py'), name, dump,
               *[str(getattr(options, size)) for size in SIZES[2:6]], str(options.peer_rounds)]
    threads = {key: str(options.threads) for key in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS')}
    quiet = {'DGLBACKEND': 'pytorch', 'DGLDEFAULTDIR': os.path.join(served.ROOT, '.cache', 'dgl')}
    found = last_line(command, {**os.environ, **threads, **quiet, **served.TUNED}, folder)
    if found['error'] > 1e-3:
        sys.exit(f'{name} computes something else: logits differ by {found["error"]}')
    return found


def present(options):
    """Names of peers that are installed; tells which are not."""
    names = [name for name in options.peers.split(',') if name != '']
    pythons = {name: served.peer_python(name.split('-')[0]) for name in names}
    for name, python in pythons.items():
        if not os.path.exists(python):
            print(f'left out: {name}: no {python} (bench/peers/setup.sh)', file=sys.stderr)
    return [name for name in names if os.path.exists(pythons[name])]


def main():
    options = options_of(sys.argv[1:])
    folder = os.path.join(served.ROOT, 'build', 'bench')
    dump = os.path.join(folder, 'evaluation-dump')
    os.makedirs(folder, exist_ok=True)
    try:
        ours = [gnnd(options, budget, dump, folder) for budget in options.budgets.split(',')]
        peers = [peer(options, name, dump, folder) for name in present(options)]
    finally:
        shutil.rmtree(dump, ignore_errors=True)
    for line in ours:
        place = 'memory' if line['in_memory'] else 'a file'
        print(f'gnnd, hidden rows in {place}: {line["seconds"]:.2f} s, {line["ratio"]:.2f} times the '
              f'floor; rows {line["rows"]}')
    for line in peers:
        times = ' and '.join(f'{line["seconds"] / own["seconds"]:.1f}' for own in ours)
        print(f'{line["peer"]}: {line["seconds"]:.2f} s, {times} times gnnd\'s')
    with open(os.path.join(folder, 'evaluation.jsonl'), 'w', encoding='utf8') as file:
        file.writelines(json.dumps(line) + '\n' for line in [*ours, *peers])


main()
