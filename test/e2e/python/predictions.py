"""Compares what an inference predicted with a plain PyTorch forward pass over the whole graph.

usage: predictions.py MODULES PREDICTIONS EXPORT DATASET

Folders of an inference with logits and probabilities, of an export of the same parameters, and of
the dataset that was predicted; MODULES is src/python/gnnd/rows.py, by which rows are computed.
Nothing else of the product computes here: dense matrices, float64 but for those modules.

Prints JSON: the largest absolute difference of a logit and of a probability, the largest relative
one of an embedding, how many classes differ
where the two largest logits are not within 1e-4, and what the Parquet file said, where there is one
and pyarrow.
"""
import hashlib
import json
import pathlib
import sys

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from rows_checkpoint import load_state, module_of


def adjacency(dataset):
    """Dense, with the number of edges u -> v at [v, u]."""
    indptr = np.load(dataset / 'indptr.npy').astype(np.int64)
    indices = np.load(dataset / 'indices.npy').astype(np.int64)
    matrix = np.zeros((len(indptr) - 1, len(indptr) - 1))
    np.add.at(matrix, (np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices), 1)
    return matrix


def scaled(x, mean, deviation):
    return (x - np.array(mean)) / np.array(deviation)


def sage(state, matrix, x):
    """Rows of each layer."""
    given = []
    degree = matrix.sum(1, keepdims=True)
    mean = np.divide(matrix, degree, out=np.zeros_like(matrix), where=degree > 0)
    layers = len({name.split('.')[1] for name in state})
    for layer in range(layers):
        part = lambda name: state[f'convs.{layer}.{name}'].double().numpy()
        x = mean @ x @ part('lin_l.weight').T + part('lin_l.bias') + x @ part('lin_r.weight').T
        if layer + 1 < layers:
            x = np.maximum(x, 0)
        given.append(x)
    return given


def gcn(state, matrix, x):
    loops = matrix + np.eye(len(matrix))
    # gnnd and DGL count in-degrees on both sides; of an undirected graph they are the same.
    scale = 1 / np.sqrt(loops.sum(1))
    given = []
    layers = len({name.split('.')[1] for name in state})
    for layer in range(layers):
        weight = state[f'convs.{layer}.lin.weight'].double().numpy()
        bias = state[f'convs.{layer}.bias'].double().numpy()
        x = scale[:, None] * (loops @ (scale[:, None] * (x @ weight.T))) + bias
        if layer + 1 < layers:
            x = np.maximum(x, 0)
        given.append(x)
    return given


def rows(modules, export, state, matrix, x):
    facts = export['rows']
    assert facts['operators'] == ['SYMMETRIC'] and facts['self_loops']
    loops = matrix + np.eye(len(matrix))
    scale = 1 / np.sqrt(loops.sum(1))
    operator = scale[:, None] * loops * scale
    tokens = [x]
    for _ in range(facts['hops']):
        tokens.append(operator @ tokens[-1])
    if facts['mean'] is not None:
        tokens = [scaled(*each) for each in zip(tokens, facts['mean'], facts['deviation'])]
    tokens = [token.astype(np.float32) for token in tokens]
    shape = export['model']
    sizes = {'features': shape['in_dim'], 'classes': shape['out_dim']}
    if shape['type'] != 'SGC':
        sizes |= {'hops': facts['hops'], 'hidden': shape['hidden_dim']}
    if shape['type'] == 'HOGA':
        sizes |= {'heads': shape['heads'], 'residual': shape['residual']}
    model = getattr(module_of(modules), shape['type'])(**sizes).eval()
    model.load_state_dict(state)
    given = tokens[-1] if shape['type'] == 'SGC' else np.stack(tokens, 1)
    with torch.no_grad():
        return model(torch.from_numpy(given)).double().numpy()


def parquet(folder, nodes, logits):
    path = folder / 'predictions.parquet'
    if not path.exists():
        return None
    try:
        import pyarrow.parquet as reader
    except ImportError:
        return 'no pyarrow'
    table = reader.read_table(path).to_pydict()
    assert table['node'] == nodes.tolist()
    assert table['prediction'] == logits.argmax(1).tolist()
    assert np.array_equal(np.array(table['logits'], np.float32), logits)
    return len(table['node'])


def apart(found, wanted, nodes):
    """The largest difference, by the largest number; 0 where nothing is known."""
    assert found.dtype == np.float32 and len(found) == len(nodes)
    if wanted is None:
        return 0.0
    return float(np.abs(found - wanted[nodes]).max() / max(1, np.abs(wanted).max()))


def main(modules, folder, exported, dataset):
    summary = json.loads((folder / 'inference.json').read_text())
    assert {path.name for path in folder.iterdir()} - {'inference.json'} == set(summary['files'])
    for name, facts in summary['files'].items():
        data = (folder / name).read_bytes()
        assert len(data) == facts['bytes'], name
        assert hashlib.sha256(data).hexdigest() == facts['sha256'], name
    export = json.loads((exported / 'export.json').read_text())
    state = load_state(exported / 'model.safetensors')
    matrix = adjacency(dataset)
    x = np.load(dataset / 'features.npy').astype(np.float64)
    if export['standardized_features']:
        x = scaled(x, export['feature_mean'], export['feature_deviation'])
    kind = export['model']['type']
    if kind in ('GRAPHSAGE', 'GCN'):
        layers = {'GRAPHSAGE': sage, 'GCN': gcn}[kind](state, matrix, x)
    else:
        # Hidden rows of SIGN are compared with those of its module (package/test_exports.py).
        layers = [None] * (export['model']['layers'] - 1)
        layers.append(rows(modules, export, state, matrix, x))
    wanted, hidden = layers[-1], layers[summary['layer'] - 1]
    nodes = np.arange(len(wanted))
    if (folder / 'nodes.npy').exists():
        nodes = np.load(folder / 'nodes.npy')
    wanted = wanted[nodes]
    logits = np.load(folder / 'logits.npy')
    probabilities = np.load(folder / 'probabilities.npy')
    predictions = np.load(folder / 'predictions.npy')
    assert logits.dtype == probabilities.dtype == np.float32 and predictions.dtype == np.int64
    assert logits.shape == probabilities.shape == wanted.shape and len(predictions) == len(nodes)
    assert np.array_equal(predictions, logits.argmax(1))
    shares = np.exp(wanted - wanted.max(1, keepdims=True))
    shares /= shares.sum(1, keepdims=True)
    two = np.sort(wanted, 1)[:, -2:]
    clear = two[:, 1] - two[:, 0] > 1e-4 * np.abs(two).max(1)
    print(json.dumps({
        'nodes': len(nodes),
        'logits': float(np.abs(logits - wanted).max()),
        'largest': float(np.abs(wanted).max()),
        'probabilities': float(np.abs(probabilities - shares).max()),
        'classes': int((predictions != wanted.argmax(1))[clear].sum()),
        'embeddings': apart(np.load(folder / 'embeddings.npy'), hidden, nodes),
        'parquet': parquet(folder, nodes, logits),
    }))


if __name__ == '__main__':
    main(*map(pathlib.Path, sys.argv[1:]))
