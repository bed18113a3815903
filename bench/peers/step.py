#!/usr/bin/env python3
"""One training step of GraphSAGE on the same batches: gnnd beside DGL and torch_geometric.

usage: step.py [--graphs products-300k] [--fanouts 10,10] [--batch 1024] [--hidden 256]
               [--threads 1] [--rounds 12] [--batches 4] [--settings tuned,default]
               [--peers dgl,pyg-csr,pyg-edge-index,pyg-coo] [--bfloat16]

step_bench samples the batches and draws the initial weights; all train on those, in turns, with
Adam, without dropout. The losses of the first steps must agree to 1e-4, else nothing is reported. With
--bfloat16 gnnd trains in bfloat16 on features stored in float16, and peers in float32 and, those
that can, on features in bfloat16 under torch's autocast: losses of the narrow ones must agree to 1e-2.
A step is the gather of the batch's features, building the adjacency, forward, backward and the
optimizer; `step` leaves the gather out; CPU time is that of all of it. One JSON line per contestant in
build/bench/peers-step.jsonl.
"""
import argparse
import os
import sys
import tempfile

import graphs
import served


def start_all(options, folder, dump):
    binary = os.path.join(served.ROOT, 'build', 'native', 'step_bench')
    gnnd = served.Contestant('gnnd', [
        binary, folder, dump, '--fanouts', options.fanouts, '--batch', str(options.batch),
        '--hidden', str(options.hidden), '--threads', str(options.threads),
        '--batches', str(options.batches), *(['--bfloat16'] if options.bfloat16 else [])],
        options.threads)
    gnnd.wait_until_ready()
    peers = []
    for setting in options.settings.split(','):
        for peer, *precision in variants(options):
            command = [served.peer_python('dgl' if peer == 'dgl' else 'pyg'), '-W', 'ignore',
                       os.path.join(served.HERE, 'step_peer.py'), peer, folder, dump,
                       str(len(options.fanouts.split(','))), str(options.batches),
                       str(options.hidden), str(options.threads), *precision]
            name = ' '.join((peer, *precision, setting))
            peers.append(served.Contestant(name, command, options.threads,
                                           served.TUNED if setting == 'tuned' else {}))
    return [gnnd, *served.start(peers)]


def variants(options):
    """Peers, and those that have kernels for it in bfloat16, too: DGL and torch's CSR have none."""
    peers = [(peer,) for peer in options.peers.split(',')]
    narrow = [(*peer, 'bfloat16') for peer in peers if peer[0] in ('pyg-coo', 'pyg-edge-index')]
    return peers + (narrow if options.bfloat16 else [])


def run_rounds(options, contestants):
    answers = {contestant.name: [] for contestant in contestants}
    for number in range(options.rounds + 1):
        shift = number % len(contestants)
        for contestant in contestants[shift:] + contestants[:shift]:
            answers[contestant.name].append(contestant.ask(f'run {options.batches}'))
    check_losses(options, answers)
    return {name: found[1:] for name, found in answers.items()}


def check_losses(options, answers):
    ours = answers['gnnd'][0]['loss']
    for name, found in answers.items():
        narrow = 'bfloat16' in name or options.bfloat16
        for own, other in zip(ours, found[0]['loss']):
            if abs(own - other) > (1e-2 if narrow else 1e-4) * abs(own):
                sys.exit(f'{name} computes something else: losses {found[0]["loss"]} for {ours}')


def summary(answers):
    steps = [step for answer in answers
             for step in zip(answer['extract_ns'], answer['gradient_ns'], answer['apply_ns'],
                             answer['cpu_ns'])]

    def milliseconds(*parts):
        return round(served.median([sum(step[part] for part in parts) for step in steps]) / 1e6, 3)
    return {'steps': len(steps), 'gather_ms': milliseconds(0), 'gradient_ms': milliseconds(1),
            'adam_ms': milliseconds(2), 'step_ms': milliseconds(1, 2),
            'step_with_gather_ms': milliseconds(0, 1, 2), 'cpu_ms': milliseconds(3)}


def report(options, graph, answers):
    setting = {'bench': 'peers-step', 'graph': graph, 'fanouts': options.fanouts,
               'batch': options.batch, 'bfloat16': options.bfloat16, 'hidden': options.hidden, 'threads': options.threads,
               **served.facts()}
    lines = [{**setting, 'name': name, **summary(found)} for name, found in answers.items()]
    for key, ratio in (('step_ms', 'speed_up'), ('step_with_gather_ms', 'speed_up_with_gather'),
                       ('cpu_ms', 'cpu_speed_up')):
        best = min((line[key] for line in lines if line['name'] != 'gnnd'),
                   default=lines[0][key])
        for line in lines:
            line[ratio] = round(best / line[key], 2)
    print(f"\n{graph} GraphSAGE [{options.fanouts}] x {options.batch}, hidden {options.hidden}, "
          f"{options.threads} thread(s), {lines[0]['steps']} steps, load {setting['load']}")
    print(f"{'ms':24} {'gather':>8} {'gradient':>9} {'adam':>6} {'step':>8} {'with gather':>12} "
          f"{'x best peer':>12} {'with gather':>12} {'by CPU time':>12}")
    for line in sorted(lines, key=lambda line: line['step_with_gather_ms']):
        print(f"{line['name']:24} {line['gather_ms']:8.2f} {line['gradient_ms']:9.2f} "
              f"{line['adam_ms']:6.2f} {line['step_ms']:8.2f} {line['step_with_gather_ms']:12.2f} "
              f"{line['speed_up']:12.2f} {line['speed_up_with_gather']:12.2f} "
              f"{line['cpu_speed_up']:12.2f}", flush=True)
    served.write_lines('peers-step', lines)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('--graphs', default='products-300k')
    parser.add_argument('--fanouts', default='10,10')
    parser.add_argument('--batch', type=int, default=1024)
    parser.add_argument('--hidden', type=int, default=256)
    parser.add_argument('--threads', type=int, default=1)
    parser.add_argument('--rounds', type=int, default=12)
    parser.add_argument('--batches', type=int, default=4)
    parser.add_argument('--peers', default='dgl,pyg-csr,pyg-edge-index,pyg-coo')
    parser.add_argument('--settings', default='tuned,default')
    parser.add_argument('--bfloat16', action='store_true')
    options = parser.parse_args()
    for graph in options.graphs.split(','):
        with tempfile.TemporaryDirectory() as dump:
            contestants = start_all(options, graphs.folder_of(graph), dump)
            report(options, graph, run_rounds(options, contestants))
            for contestant in contestants:
                contestant.close()


if __name__ == '__main__':
    main()
