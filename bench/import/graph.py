"""A random graph as the folder of a format. usage: graph.py FORMAT FOLDER GIB

Of 64 features a node, whose numbers have three digits, and 32 edges a node, each once. GIB is about
what the arrays of the dataset take; the graph depends on it alone, not on the format.
"""

import gzip
import pathlib
import sys

import numpy as np

FEATURES = 64
DEGREE = 32
CLASSES = 16
PIECE = 1 << 15


def features_of(start, end):
    """[end - start, FEATURES] float32, multiples of 1/8: the same numbers as texts."""
    rows = np.arange(start, end, dtype=np.uint32)[:, None]
    columns = np.arange(FEATURES, dtype=np.uint32)[None, :]
    mixed = (rows * np.uint32(2654435761) + columns * np.uint32(40503)) >> np.uint32(20)
    return (mixed % 800).astype(np.float32) / 8


def steps_of(nodes):
    """[DEGREE], each below half of the nodes, so that no edge is another one turned round."""
    return 1 + 7919 * np.arange(DEGREE, dtype=np.int64) % (nodes // 2 - 1)


def edges_of(start, end, nodes):
    """[2, n]: each node of a piece with nodes that are further on; no edge is listed twice."""
    sources = np.repeat(np.arange(start, end, dtype=np.int64), DEGREE)
    return np.stack([sources, (sources + np.tile(steps_of(nodes), end - start)) % nodes])


def reversed_of(start, end, nodes):
    """[2, n]: the edges that end in these nodes, turned round."""
    targets = np.repeat(np.arange(start, end, dtype=np.int64), DEGREE)
    return np.stack([targets, (targets - np.tile(steps_of(nodes), end - start)) % nodes])


def pieces(nodes):
    """Where each piece of nodes starts and ends."""
    return [(start, min(start + PIECE, nodes)) for start in range(0, nodes, PIECE)]


def split_of(nodes):
    """train, val or test of each node."""
    return np.array(["train", "val", "test"])[np.arange(nodes) % 3]


def csv_file(path, header, write):
    """A plain CSV file, or a gzipped one by its name."""
    opened = gzip.open(path, "wb", compresslevel=1) if path.suffix == ".gz" else open(path, "wb")
    with opened as file:
        if header:
            file.write(f"{header}\n".encode())
        write(file)


def lines(columns):
    """Rows of columns of texts."""
    return ("\n".join(map(",".join, zip(*columns, strict=True))) + "\n").encode()


def texts(values):
    return [f"{value:g}" for value in values]


def make_csv(folder, nodes, prefix=""):
    names = ",".join(f"f{column}" for column in range(FEATURES))
    splits = split_of(nodes)

    def node_lines(file):
        for start, end in pieces(nodes):
            ids = [f"{prefix}{node}" for node in range(start, end)]
            labels = [str(node % CLASSES) for node in range(start, end)]
            columns = [texts(column) for column in features_of(start, end).T]
            file.write(lines([ids, labels, splits[start:end].tolist(), *columns]))

    csv_file(folder / "nodes.csv", f"id,label,split,{names}", node_lines)
    csv_file(folder / "edges.csv", "source,target", lambda file: edge_lines(file, nodes, prefix))


def make_csv_names(folder, nodes):
    make_csv(folder, nodes, "node-")


def edge_lines(file, nodes, prefix=""):
    for start, end in pieces(nodes):
        ends = edges_of(start, end, nodes)
        file.write(lines([[f"{prefix}{node}" for node in row.tolist()] for row in ends]))


def make_npy(folder, nodes):
    pairs = np.lib.format.open_memmap(
        folder / "edge_index.npy", "w+", np.int64, (2, 2 * nodes * DEGREE)
    )
    table = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (nodes, FEATURES))
    for start, end in pieces(nodes):
        table[start:end] = features_of(start, end)
        # By source, so that each target has its sources in their order.
        there, back = edges_of(start, end, nodes), reversed_of(start, end, nodes)
        at = slice(2 * start * DEGREE, 2 * end * DEGREE)
        pairs[:, at] = np.concatenate(
            [there.reshape(2, -1, DEGREE), back.reshape(2, -1, DEGREE)], axis=2
        ).reshape(2, -1)
    np.save(folder / "labels.npy", np.arange(nodes) % CLASSES)
    for name in ("train", "val", "test"):
        np.save(folder / f"{name}.npy", np.flatnonzero(split_of(nodes) == name))
    (folder / "meta.json").write_text("{}")


def make_parquet(folder, nodes):
    import pyarrow as pa
    from pyarrow import parquet

    splits = split_of(nodes)
    writers = {}
    for start, end in pieces(nodes):
        columns = {f"f{column}": row for column, row in enumerate(features_of(start, end).T)}
        ids = np.arange(start, end)
        source, target = edges_of(start, end, nodes)
        tables = {
            "nodes": {"id": ids, "label": ids % CLASSES, "split": splits[start:end], **columns},
            "edges": {"source": source, "target": target},
        }
        for name, columns in tables.items():
            table = pa.table(columns)
            path = folder / f"{name}.parquet"
            if name not in writers:
                writers[name] = parquet.ParquetWriter(path, table.schema)
            writers[name].write_table(table)
    for writer in writers.values():
        writer.close()


def make_ogb(folder, nodes):
    raw, split = folder / "raw", folder / "split" / "random"
    raw.mkdir()
    split.mkdir(parents=True)

    def feature_lines(file):
        for start, end in pieces(nodes):
            file.write(lines([texts(column) for column in features_of(start, end).T]))

    csv_file(raw / "node-feat.csv.gz", "", feature_lines)
    csv_file(raw / "edge.csv.gz", "", lambda file: edge_lines(file, nodes))
    csv_file(raw / "num-node-list.csv.gz", "", lambda file: file.write(f"{nodes}\n".encode()))
    labels = [str(node % CLASSES) for node in range(nodes)]
    csv_file(raw / "node-label.csv.gz", "", lambda file: file.write(lines([labels])))
    for name, file_name in (("train", "train"), ("val", "valid"), ("test", "test")):
        ids = map(str, np.flatnonzero(split_of(nodes) == name).tolist())
        csv_file(split / f"{file_name}.csv.gz", "", lambda file, ids=ids: file.write(lines([ids])))


if __name__ == "__main__":
    kind, folder, gib = sys.argv[1], pathlib.Path(sys.argv[2]), float(sys.argv[3])
    # Features, and entries in both directions.
    count = int(gib * 2**30 / (4 * FEATURES + 2 * DEGREE * 4))
    makers = {
        "csv": make_csv,
        "csv-names": make_csv_names,
        "npy": make_npy,
        "parquet": make_parquet,
        "ogb": make_ogb,
    }
    makers[kind](folder, count)
