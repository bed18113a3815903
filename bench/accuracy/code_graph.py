#!/usr/bin/env python3
"""Makes a graph of Python modules: what they import, and the package that each is of.

usage: code_graph.py OUT ROOT...      folders that packages lie in, such as site-packages

A node is a module of a package with at least 100 of them, at most 400 of each; its class is that
package, an edge an import (both ways). Features are logarithms of how many syntax nodes of each
kind a module has. Of the nodes 60 % are for training and 20 % each to validate and to test, by a
hash of their names. What it makes depends on what the folders hold: compare runs on one such graph
alone. Needs numpy.
"""

import ast
import json
import os
import sys
import zlib

import numpy as np

LEAST, MOST = 100, 400


def read(file, name):
    """Counts of syntax nodes by kind, and dotted names that are imported, relative ones too."""
    with open(file, "rb") as source:
        tree = ast.parse(source.read())
    counts, targets = {}, []
    here = name.split(".")
    if file.endswith("__init__.py"):
        here.append("")
    for node in ast.walk(tree):
        kind = type(node).__name__
        counts[kind] = counts.get(kind, 0) + 1
        if isinstance(node, ast.Import):
            targets += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level] if node.level else []
            base = [*base, *([node.module] if node.module else [])]
            targets += [".".join([*base, alias.name]) for alias in node.names]
    return counts, targets


def modules_of(roots):
    """What `read` says of modules by their names; of packages in several folders the first."""
    modules, packages = {}, set()
    for root in roots:
        for package in sorted(set(os.listdir(root)) - packages):
            files = []
            for folder, _, names in os.walk(os.path.join(root, package)):
                files += [os.path.join(folder, name) for name in names if name.endswith(".py")]
            if not package.isidentifier() or len(files) < LEAST:
                continue
            packages.add(package)
            for file in sorted(files, key=lambda file: zlib.crc32(file.encode()))[:MOST]:
                name = os.path.relpath(file, root)[:-3].replace(os.sep, ".")
                name = name.removesuffix(".__init__")
                try:
                    modules[name] = read(file, name)
                except (SyntaxError, ValueError, RecursionError):
                    continue
    return modules


def main(out, roots):
    """Writes the graph of the packages in `roots` to the folder `out`."""
    modules = modules_of(roots)
    names = sorted(modules)
    ids = {name: place for place, name in enumerate(names)}
    pairs, kinds = set(), {}
    for name in names:
        counts, targets = modules[name]
        for kind in counts:
            kinds.setdefault(kind, len(kinds))
        for target in targets:
            known = target
            while known and known not in ids:
                known = known.rpartition(".")[0]
            if known and known != name:
                pairs |= {(ids[name], ids[known]), (ids[known], ids[name])}
    features = np.zeros((len(names), len(kinds)), np.float32)
    for name in names:
        for kind, count in modules[name][0].items():
            features[ids[name], kinds[kind]] = np.log1p(count)
    edges = np.array(sorted(pairs))
    packages = sorted({name.split(".")[0] for name in names})
    part = np.array([zlib.crc32(f"split:{name}".encode()) % 100 for name in names])
    arrays = {
        "indptr": np.searchsorted(edges[:, 0], np.arange(len(names) + 1)).astype(np.int64),
        "indices": edges[:, 1].astype(np.int32),
        "features": features,
        "labels": np.array([packages.index(name.split(".")[0]) for name in names], np.int32),
        "train": np.nonzero(part < 60)[0],
        "val": np.nonzero((part >= 60) & (part < 80))[0],
        "test": np.nonzero(part >= 80)[0],
    }
    os.makedirs(out, exist_ok=True)
    for key, array in arrays.items():
        np.save(os.path.join(out, f"{key}.npy"), array)
    print(
        json.dumps(
            {
                "nodes": len(names),
                "edges": len(edges),
                "columns": len(kinds),
                "packages": packages,
                "zeros": float((features == 0).mean()),
            }
        )
    )


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
