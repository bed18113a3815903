"""Recomputes a cache report from what was sampled, sharing no code with gnnd.

    cache_report.py DATASET_FOLDER DUMP_FOLDER REPORT.json

REPORT.json is what `gnnctl cache report -o json` printed, DUMP_FOLDER what --dump-dir received.
Prints one line for each cell that differs and exits with 1 when there is one.
"""

import json
import os
import sys

import numpy as np

MASK = np.uint64(0xFFFFFFFF)
LAYERS_OF_WALKS = 3  # model.layers of a job that walks and says nothing else


def philox(counter, key):
    """First word of Philox 4x32-10; counter: four arrays of uint64 below 2^32, key: two ints."""
    c0, c1, c2, c3 = (np.asarray(c, dtype=np.uint64) for c in counter)
    k0, k1 = np.uint64(key[0]), np.uint64(key[1])
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c0
        p1 = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (p1 >> np.uint64(32)) ^ c1 ^ k0, p1 & MASK, (p0 >> np.uint64(32)) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & MASK, (k1 + np.uint64(0xBB67AE85)) & MASK
    return c0


def order_of(hotness):
    """Nodes by falling hotness, ties by rising id."""
    return np.lexsort((np.arange(len(hotness)), -hotness))


def log_missed(probability):
    return np.log1p(-np.minimum(probability, 1 - 1e-12))


def drawn(sampling, fanout, degree, row, weights):
    """Probability that an edge is drawn once its row is expanded; one value an edge."""
    d = degree[row]
    takes_all = np.full(len(row), fanout < 0) | ((d <= fanout) & (not sampling.get("replace", False)))
    if sampling["algorithm"] == "SAMPLING_ALGORITHM_KHOP_WEIGHTED":
        sums = np.bincount(row, weights=weights, minlength=len(degree))
        q = 1 - (1 - weights / sums[row]) ** fanout
    elif sampling.get("replace", False):
        q = 1 - (1 - 1 / d) ** fanout
    else:
        q = np.minimum(1, fanout / d)
    return np.where(takes_all, 1.0, q)


def expected_batches(indptr, indices, weights, train, sampling, batches):
    """SALIENT++'s inclusion probabilities through the hops of any sampler."""
    degree = np.diff(indptr)
    row = np.repeat(np.arange(len(degree)), degree)
    p = np.zeros(len(degree))
    p[train] = 1 / batches
    expanded = p
    walk = sampling.get("walk") or {}
    walks = sampling["algorithm"] == "SAMPLING_ALGORITHM_RANDOM_WALK"
    for fanout in [walk["neighbors"]] * LAYERS_OF_WALKS if walks else sampling["fanouts"]:
        missed = log_missed(p)
        if walks:
            goes_on = 1 - walk["restartProb"]
            steps = sum(goes_on**t for t in range(walk["length"]))
            kept = min(1, fanout / (walk["walks"] * steps))
            walkers = expanded
            for _ in range(walk["length"]):
                places = np.bincount(indices, weights=(walkers / np.maximum(degree, 1))[row], minlength=len(degree))
                missed = missed - kept * walk["walks"] * places
                walkers = places * goes_on
        else:
            terms = log_missed(expanded[row] * drawn(sampling, fanout, degree, row, weights))
            missed = missed + np.bincount(indices, weights=terms, minlength=len(degree))
        now = -np.expm1(missed)
        expanded = now - p if sampling["expansion"] == "EXPANSION_NEW" else now
        p = now
    return p * batches


def similarity(f_i, f_j):
    tenth = max(1, len(f_i) // 10)
    t_i, t_j = order_of(f_i)[:tenth], order_of(f_j)[:tenth]
    both = np.intersect1d(t_i, t_j)
    return np.minimum(f_i[both], f_j[both]).sum() / f_j[t_j].sum()


def check(part, folder, dump, seed):
    indptr = np.load(f"{folder}/indptr.npy")
    indices = np.load(f"{folder}/indices.npy").astype(np.int64)
    train = np.load(f"{folder}/train.npy")
    weighted = os.path.exists(f"{folder}/edge_weights.npy")
    weights = np.load(f"{folder}/edge_weights.npy").astype(float) if weighted else None
    row_bytes = np.load(f"{folder}/features.npy", mmap_mode="r")[0].nbytes
    nodes, offsets = np.load(f"{dump}/nodes.npy"), np.load(f"{dump}/offsets.npy")
    num_nodes = len(indptr) - 1
    batches = int(part["batchesPerEpoch"])
    presampled = max([int(p["presampleEpochs"]) for p in part["policies"]])
    epochs = (len(offsets) - 1) // batches - presampled
    for begin, end in zip(offsets[:-1], offsets[1:]):
        assert len(np.unique(nodes[begin:end])) == end - begin, "a batch lists a node twice"

    def counts(first, last):
        return np.bincount(nodes[offsets[first * batches]:offsets[last * batches]], minlength=num_nodes)

    footprints = [counts(presampled + e, presampled + e + 1) for e in range(epochs)]
    optimal = np.sum(footprints, axis=0)
    estimate = expected_batches(indptr, indices, weights, train, part["sampling"], batches)
    zero = np.zeros(num_nodes, dtype=np.uint64)
    words = philox((np.arange(num_nodes), zero, zero, zero + np.uint64(32 << 24)), (seed & 0xFFFFFFFF, seed >> 32))
    hotness = {
        "OPTIMAL": lambda k: optimal,
        "PRESC": lambda k: counts(0, k),
        "COMBINED": lambda k: (counts(0, k) + 2 * estimate) / (k + 2),
        "PROBABILITY": lambda k: estimate,
        "DEGREE": lambda k: np.bincount(indices, minlength=num_nodes),
        "RANDOM": lambda k: (words >> np.uint64(8)).astype(float),
    }
    differences = []

    def compare(what, found, expected, tolerance):
        if abs(found - expected) > tolerance * max(1.0, abs(expected)):
            differences.append(f"{what}: {found} reported, {expected} recomputed")

    compare("inputRows", part["inputRows"], optimal.sum() / epochs, 1e-9)
    compare("inputBytes", part["inputBytes"], optimal.sum() / epochs * row_bytes, 1e-9)
    if epochs > 1:
        adjacent = [similarity(a, b) for a, b in zip(footprints[:-1], footprints[1:])]
        compare("similarity", part["similarity"], np.mean(adjacent), 1e-9)
    for policy in part["policies"]:
        name = policy["policy"].removeprefix("CACHE_POLICY_")
        order = order_of(hotness[name](int(policy["presampleEpochs"])))
        # Estimates are float32 there and float64 here: near ties may change places.
        tolerance = 1e-3 if name in ("COMBINED", "PROBABILITY") else 1e-9
        for cell in policy["cells"]:
            what = f"{name}#{policy['presampleEpochs']} at {cell['ratio']}"
            rows = int(cell["ratio"] * num_nodes)
            hit_rate = optimal[order[:rows]].sum() / optimal.sum()
            compare(f"{what}: rows", int(cell["rows"]), rows, 0)
            compare(f"{what}: hit rate", cell["hitRate"], hit_rate, tolerance)
            moved = (1 - hit_rate) * optimal.sum() * row_bytes / epochs
            compare(f"{what}: bytes moved", cell["bytesMoved"], moved, tolerance)
    return differences


def main():
    folder, dump, path = sys.argv[1:4]
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    cells = 0
    differences = []
    for index, part in enumerate(report["samplings"]):
        differences += [f"samplings[{index}]: {d}" for d in check(part, folder, f"{dump}/{index}", seed)]
        cells += sum(len(policy["cells"]) for policy in part["policies"])
    print("\n".join(differences + [f"{cells} cells recomputed, {len(differences)} differences"]))
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
