"""Loads a checkpoint of SGC, SIGN or HOGA into its module of plain PyTorch.

usage: rows_checkpoint.py MODULES CHECKPOINT PROPAGATION KIND ARGUMENTS [EXPORT]

MODULES is src/python/gnnd/rows.py, ARGUMENTS a JSON object of what the class takes. EXPORT is an export.json, by which rows that are as they were
propagated are standardised. Prints the accuracy on test nodes as a number.
"""
import importlib.util
import json
import os
import sys

import numpy
import torch


def load_state(path):
    """A safetensors file of float32."""
    with open(path, 'rb') as file:
        data = file.read()
    size = int.from_bytes(data[:8], 'little')
    header = json.loads(data[8:8 + size])
    state = {}
    for name, entry in header.items():
        if name == '__metadata__':
            continue
        begin, end = entry['data_offsets']
        values = numpy.frombuffer(data[8 + size + begin:8 + size + end], '<f4')
        state[name] = torch.from_numpy(values.reshape(entry['shape']).copy())
    return state


def module_of(path):
    """A Python file as a module, without the package that it is of."""
    spec = importlib.util.spec_from_file_location('rows', path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(modules, checkpoint, propagation, kind, arguments, export=None):
    model = getattr(module_of(modules), kind)(**json.loads(arguments))
    model.load_state_dict(load_state(checkpoint))
    model.eval()
    with open(os.path.join(propagation, 'propagation.json'), encoding='utf8') as file:
        manifest = json.load(file)
    load = lambda name: numpy.load(os.path.join(propagation, 'rows', f'{name}.npy'))
    hops = manifest['source']['propagation']['hops']
    tokens = [load('hop0')] + [load(f'op0-hop{hop}') for hop in range(1, hops + 1)]
    if export is not None:
        with open(export, encoding='utf8') as file:
            rows = json.load(file)['rows']
        scales = zip(tokens, rows['mean'], rows['deviation'])
        tokens = [((x - numpy.array(m)) / numpy.array(d)).astype(numpy.float32) for x, m, d in scales]
    rows = torch.from_numpy(tokens[-1] if kind == 'SGC' else numpy.stack(tokens, 1))
    first = manifest['split']['train'] + manifest['split']['val']
    with torch.no_grad():
        found = model(rows[first:]).argmax(1)
    print((found == torch.from_numpy(load('labels')[first:])).double().mean().item())


if __name__ == '__main__':
    main(*sys.argv[1:])
