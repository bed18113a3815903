"""Loads a checkpoint of SGC, SIGN or HOGA into the module that docs/pre-propagation.md gives.

usage: rows_checkpoint.py DOCS CHECKPOINT PROPAGATION KIND ARGUMENTS [EXPORT]

ARGUMENTS is a JSON list of the class's. EXPORT is an export.json, by which rows that are as they were
propagated are standardised. Prints the accuracy on test nodes as a number.
"""
import json
import os
import re
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


def main(docs, checkpoint, propagation, kind, arguments, export=None):
    with open(docs, encoding='utf8') as file:
        code = re.findall(r'```python\n(import torch.*?)```', file.read(), re.S)[0]
    classes = {}
    exec(code, classes)
    model = classes[kind](**json.loads(arguments))
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
