#!/usr/bin/env python3
"""Epochs of a linear model on rows of files, by loaders of PyTorch, as lines of JSON.

usage: loaders.py FOLDER HOPS MODEL BATCH THREADS ROUNDS

`dataloader-W`: a Dataset whose __getitem__ takes a node's row of every hop, the default collate, W workers;
an epoch is extrapolated from its first 40 batches. `index_select`: rows of a batch by one index_select a hop.
Both then concatenate hops, and do a forward and a backward pass and a step of Adam. Rows lie in memory.
Medians of ROUNDS rounds in turns, the first round not counted.
"""
import json
import statistics
import sys
import time

import numpy as np
import torch

CLASSES, SOME = 47, 40


class Rows(torch.utils.data.Dataset):
    def __init__(self, hops, labels):
        self.hops, self.labels = hops, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, at):
        return [hop[at] for hop in self.hops], self.labels[at]


def main():
    folder, hops, model, batch, threads, rounds = sys.argv[1:]
    hops, batch, threads, rounds = int(hops), int(batch), int(threads), int(rounds)
    torch.set_num_threads(threads)
    names = ['hop0'] + [f'op0-hop{hop}' for hop in range(1, hops + 1)]
    names = names[-1:] if model == 'sgc' else names
    tokens = [torch.from_numpy(np.load(f'{folder}/{name}.npy')) for name in names]
    labels = torch.from_numpy(np.load(f'{folder}/labels.npy').astype(np.int64))
    count, columns = tokens[0].shape
    linear = torch.nn.Linear(len(names) * columns, CLASSES)
    adam = torch.optim.Adam(linear.parameters())

    def step(rows, wanted):
        adam.zero_grad()
        torch.nn.functional.cross_entropy(linear(torch.cat(rows, 1)), wanted).backward()
        adam.step()

    def by_index_select():
        start = time.perf_counter()
        order = torch.randperm(count)
        for at in range(0, count, batch):
            index = order[at:at + batch]
            step([token.index_select(0, index) for token in tokens], labels[index])
        return time.perf_counter() - start

    def by_loader(workers):
        loader = torch.utils.data.DataLoader(
            Rows(tokens, labels), batch_size=batch, shuffle=True, num_workers=workers)
        batches = iter(loader)
        step(*next(batches))
        start = time.perf_counter()
        done = 0
        for _ in range(min(SOME, len(loader) - 1)):
            step(*next(batches))
            done += 1
        took = time.perf_counter() - start
        del batches
        return took / done * len(loader)

    ways = {'index_select': by_index_select}
    ways |= {f'dataloader-{w}': (lambda w=w: by_loader(w)) for w in (0, 1, 2)}
    times = {name: [] for name in ways}
    for turn in range(rounds + 1):
        for name, run in ways.items():
            took = run()
            if turn > 0:
                times[name].append(took)
    print(json.dumps({name: statistics.median(all_) for name, all_ in times.items()}))


main()
