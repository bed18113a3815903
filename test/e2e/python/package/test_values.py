"""Values of every type as what an import takes them for. Needs no daemon and no library."""

import decimal
import fractions
import json
import os
import pathlib
import tempfile
import unittest

import numpy as np

import gnnd
from gnnd import inferring, networks, sources, staging, values
from gnnd_formats.graph import FormatError, as_mask

NAN = float("nan")


def graph(**options):
    """Of 4 nodes in a ring, with what is given in place of what it has."""
    usual = {
        "features": np.ones((4, 2), np.float32),
        "labels": [0, 1, 0, 1],
        "edge_index": [[0, 1, 2, 3], [1, 2, 3, 0]],
        "train": [0, 1],
        "val": [2],
    }
    return sources.from_arrays({**usual, **options})


class Refusals(unittest.TestCase):
    def refused(self, call=graph, **options):
        """What is wrong of the only thing that is."""
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            call(**options)
        [violation] = caught.exception.violations
        self.assertEqual(violation.field, next(iter(options), violation.field))
        return violation.description


class Labels(Refusals):
    def labels(self, given, **options):
        return graph(labels=given, **options).arrays["labels"]

    def test_may_lack_a_class_that_has_a_name(self):
        names = ["a", "b", "c", "d", "never seen"]
        meta = json.loads(graph(labels=[0, 1, 2, 3], class_names=names).texts()["meta.json"])
        self.assertEqual((meta["num_classes"], meta["class_names"]), (5, names))

    def test_keep_their_fractions_whatever_number_has_them(self):
        wanted = [0.25, 1.5, 2.75, 3.5]
        for kind in (
            *(np.float16, np.float32, np.float64, np.longdouble, float),
            *(decimal.Decimal, fractions.Fraction, np.array),
            lambda value: np.array(value, np.float32),
        ):
            with self.subTest(kind):
                found = self.labels([kind(value) for value in wanted])
                self.assertEqual((found.dtype.kind, found.tolist()), ("f", wanted))
        self.assertEqual(self.labels([1, np.float32(0.5), 2, True]).tolist(), [1, 0.5, 2, 1])
        objects = np.array([np.float16(0.5), None, 2, 1], dtype=object)
        found = self.labels(objects, train=[0, 2], val=[3])
        self.assertEqual(str(found.tolist()), "[0.5, nan, 2.0, 1.0]")
        rows = self.labels([np.array([0.5, 1], np.float16)] * 4)
        self.assertEqual((rows.dtype, rows.shape), (np.float16, (4, 2)))

    def test_that_are_whole_stay_so_and_miss_some(self):
        for kind in (int, np.int8, np.uint8, np.uint64, np.int64, np.array):
            found = self.labels([kind(3), kind(0), None, kind(1)], train=[0], val=[1])
            self.assertEqual((found.dtype.kind, found.tolist()), ("i", [3, 0, -1, 1]))
        hidden = np.ma.MaskedArray([3, 0, 9, 1], [False, False, True, False])
        self.assertEqual(self.labels(hidden, train=[0], val=[1]).tolist(), [3, 0, -1, 1])
        # A number to regress on that is not known is not -1.
        found = self.labels([3, 0, None, 1], train=[0], val=[1], task="regression")
        self.assertEqual(str(found.tolist()), "[3.0, 0.0, nan, 1.0]")
        large = [2**60 + 1, 3, 4, 5]
        self.assertEqual(values.as_array(large).tolist(), large)
        self.assertEqual(values.as_array([2**63, 1]).tolist(), [2**63, 1])
        with self.assertRaisesRegex(values.Unfit, "from -1 to 9223372036854775808"):
            values.as_array([2**63, -1])
        with self.assertRaisesRegex(values.Unfit, "9007199254740993 and fractions"):
            values.as_array([2**53 + 1, 0.5])

    def test_that_are_texts_become_classes_and_some_are_not_known(self):
        for given in (
            ["b", "", "a", "nan"],
            np.array(["b", "NaN", "a", "None"]),
            np.array([b"b", b"NA", b"a", b""]),
            np.array(["b", NAN, "a", None], dtype=object),
            np.array([["b"], [""], ["a"], ["n/a"]]),
        ):
            with self.subTest(given):
                made = graph(labels=given, train=[0], val=[2])
                self.assertEqual(made.arrays["labels"].tolist(), [1, -1, 0, -1])
                self.assertEqual(made.class_names, ["a", "b"])
        self.assertRegex(graph(labels=["b", "", "a", "NA"], train=[0], val=[2]).notices[0], "'NA'")
        made = graph(labels=["10", "9", "10", "2"])
        self.assertEqual(made.class_names, ["2", "9", "10"])
        made = graph(labels=["b", "a", "b", "a"], class_names=["c", "b", "a"])
        self.assertEqual(made.arrays["labels"].tolist(), [1, 2, 1, 2])
        # Numbers of classes one of which pandas has called nan.
        made = graph(labels=[0, 1, 2, 2], class_names=["a", NAN, "c"], train=[0], val=[2])
        self.assertEqual(made.arrays["labels"].tolist(), [0, -1, 1, 1])
        self.assertEqual(made.class_names, ["a", "c"])
        self.assertRegex(made.notices[0], "'nan' are taken as not known")

    def test_that_cannot_be_meant_name_the_node(self):
        names = ["ann", "bob", "cyd", "dan"]
        for given, said in (
            (["a", 3, "b", "a"], "node 'bob' has 3 among texts"),
            ([0, 1, 1j, 0], "node 'cyd' has 1j: expected a number or a text"),
            ([[0, 1], [1], [0, 1], [0, 0]], "node 'bob' has 1 numbers, and node 'ann' has 2"),
            (np.array([0, 1, 2, 3], "M8[D]"), "they are of type datetime64"),
            ({0: 1}, "a dict has no order"),
            (np.array([0.5, 1e39, 1, 1]), "node 'bob' has 1e.39, beyond 3.4e.38"),
            (np.zeros((4, 2, 2)), r"has shape \(4, 2, 2\), expected \[nodes\] or"),
            ("labels.npy", "'labels.npy': expected an array"),
            (np.array([(0, 1)] * 4, [("a", int), ("b", int)]), "expected numbers"),
        ):
            with self.subTest(given):
                self.assertRegex(self.refused(labels=given, node_names=names), said)
        text = self.refused(labels=[0, 1.5, 0, 2.5], task="CLASSIFICATION")
        self.assertEqual(
            text, "node 1 has 1.5 and 1 more: expected whole numbers, or task='REGRESSION'"
        )
        self.assertRegex(
            self.refused(labels=["a", "b", "a", "a"], task="REGRESSION"), "numbers to regress on"
        )
        text = self.refused(labels=[0, 1, 2, 0], class_names=["a", "b"])
        self.assertRegex(text, "node 2 has class 2, and class_names has 2")
        text = self.refused(train=[0, 3], labels=[0, 1, 0, NAN], node_names=names)
        self.assertEqual(text, "has node 'dan', whose label is not known")


class Numbers(Refusals):
    def test_that_float32_has_not_are_told_or_refused(self):
        features = np.array([[1, 2**24], [2, 2**24 + 1], [3, 2**53 + 2], [4, -(2**63)]])
        [notice] = graph(features=features).notices
        self.assertRegex(notice, "2 whole .* 16777217 of node 1, column 1 becomes 16777216")
        features = np.ones((4, 2))
        features[2, 1] = -1e300
        text = self.refused(features=features, node_names=list("abcd"))
        self.assertRegex(text, "node 'c', column 1 has -1e.300, beyond")
        weights = [1, 2**24 + 1, 1, 1]
        [notice] = graph(edge_weights=weights).notices
        self.assertRegex(notice, "16777217 of the edge at index 1, from 1 to 2, becomes")
        self.assertEqual(graph(edge_weights=[1, 2, 3, 0]).arrays["edge_weights"].dtype.kind, "f")
        for wrong in (-1, NAN, np.inf):
            text = self.refused(edge_weights=[1, 1, wrong, wrong], node_names=list("abcd"))
            self.assertRegex(
                text, "the edge at index 2, from 'c' to 'd', has .* and 1 more: expected a number"
            )

    def test_that_are_not_finite_are_named_where_there_are_names(self):
        features = np.array([[1, 2], [3, NAN], [5, 6], [np.inf, 8]])
        text = self.refused(features=features, feature_names=["age", "height"])
        said = "node 1, column 'height' has nan and 1 more: expected finite numbers"
        self.assertEqual(text, said)

    def test_have_names_of_columns(self):
        self.assertEqual(graph(feature_names=["age", "height"]).feature_names, ["age", "height"])
        text = self.refused(feature_names=["age"])
        self.assertEqual(text, "has 1 names: expected one for each of 2 columns")
        self.assertRegex(self.refused(feature_names=["a", "a"]), "'a' twice: expected each once")

    def test_of_edges_are_ids_or_say_what_they_are(self):
        ends = graph(edge_index=np.array([[0.0, 1.0], [1.0, 2.0]])).arrays["edge_index"]
        self.assertEqual((ends.dtype.kind, ends.tolist()), ("i", [[0, 1], [1, 2]]))
        self.assertRegex(self.refused(edge_index=[[0.5, 1], [1, 2]]), "expected ids of nodes")
        for wrong, said in (
            ([[0, -1], [1, 2]], "from -1 to 2, has a source"),
            ([[0, 1], [1, 4]], "t"),
        ):
            text = self.refused(edge_index=wrong)
            self.assertRegex(
                text, f"the edge at index 1, .*{said}.* that no node is: expected 0 to 3"
            )
        self.assertRegex(self.refused(edge_index=np.zeros((9, 2), int)), r"give its \.T")


class Splits(Refusals):
    def test_of_0_and_1_are_masks_whatever_their_type(self):
        for kind in (bool, np.uint8, np.int8, np.int64, np.uint64, np.float32, int, object):
            made = graph(train=np.array([1, 1, 0, 0]).astype(kind), val=[False, False, True, False])
            found = made.arrays
            self.assertEqual((found["train"].dtype, found["val"].dtype), (bool, bool))
            self.assertEqual(np.flatnonzero(found["train"]).tolist(), [0, 1])
        columns = graph(train=np.array([[1, 0], [0, 1], [1, 0], [0, 1]])).arrays["train"]
        self.assertEqual((columns.dtype, columns.shape), (bool, (4, 2)))
        # As many numbers as nodes that are ids all the same.
        found = graph(train=[3, 1, 0, 2], val=[]).arrays["train"]
        self.assertEqual(found.tolist(), [3, 1, 0, 2])

    def test_that_are_none_say_what_they_are(self):
        for wrong, said in (
            ([True, False, True], "is a mask with 3 values: expected one for each of 4 nodes"),
            ([1, 0, 1], "is a mask with 3 values: expected 4, one a node"),
            ([0, 4], "has 4 at index 1: expected 0 to 3"),
            ([-1], "has -1 at index 0: expected 0 to 3"),
            ([3, 1, 3], "has node 'd' twice, at index 0 and 2"),
            (["a", "b"], "has texts: expected ids of nodes, or a mask"),
            ([0.5], "expected ids of nodes, or a mask"),
            ([2, 1], "expected no node in both"),
            ([True, None, False, False], "has values that are missing"),
        ):
            with self.subTest(wrong):
                self.assertRegex(self.refused_split(wrong), said)

    def refused_split(self, wrong):
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            graph(train=wrong, node_names=list("abcd"))
        [violation] = caught.exception.violations
        return violation.description

    def test_of_predictions_are_so_too(self):
        def numbered(nodes):
            found = inferring.listed_nodes("job.predict()", nodes)
            return inferring._numbered("job.predict()", found, 4).tolist()

        for mask in ([1, 0, 0, 1], np.array([1, 0, 0, 1], np.uint8), [True, False, False, True]):
            self.assertEqual(numbered(mask), [0, 3])
        self.assertEqual(numbered([3, 0, 3]), [3, 0, 3])
        self.assertEqual(numbered({3, 1}), [1, 3])
        self.assertEqual(numbered([]), [])
        for wrong, said in (
            ([True, False], "a mask of 2: expected one of each of 4 nodes"),
            ([0, 4], "4 at index 1: expected 0 to 3"),
            ([0.5], "float64: expected whole numbers"),
            (["a", 3], "index|row 1 has 3 among texts"),
            (["a", None], "there is none at index 1"),
        ):
            with self.assertRaisesRegex(gnnd.InvalidRequest, said):
                numbered(wrong)
        listed = inferring.listed_nodes("job.predict()", ["a", "b"])
        self.assertEqual(listed.tolist(), ["a", "b"])

    def test_in_files_are_no_ids(self):
        marked = as_mask(np.array([0, 1, 1], np.uint8), "graph.bin", "train_mask")
        self.assertEqual((marked.dtype, marked.tolist()), (bool, [False, True, True]))
        with self.assertRaisesRegex(
            FormatError, "graph.bin/train_mask: has 5 at index 1: expected"
        ):
            as_mask(np.array([0, 5, 3]), "graph.bin", "train_mask")


class Maps(unittest.TestCase):
    """An array is taken by its file only where the file has its bytes."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = self.folder / "x.npy"
        np.save(self.path, np.arange(12.0).reshape(4, 3))

    def put(self, array, name="out"):
        """Whether it was taken by its file, after what was put is what the array is."""
        is_file = staging.put_array(self.folder, name, array)
        put = np.load(self.folder / f"{name}.npy")
        self.assertTrue(np.array_equal(put, np.array(array)))
        self.assertEqual(put.dtype.newbyteorder("="), array.dtype.newbyteorder("="))
        (self.folder / f"{name}.npy").unlink()
        return is_file

    def test_that_are_only_read_are_files(self):
        mapped = np.load(self.path, mmap_mode="r")
        self.assertTrue(self.put(mapped))
        self.assertTrue(self.put(mapped[:]))

    def test_that_were_changed_in_memory_alone_are_written(self):
        mapped = np.load(self.path, mmap_mode="c")
        self.assertFalse(self.put(mapped))
        mapped -= mapped.mean(axis=0)
        self.assertFalse(self.put(mapped))
        self.assertFalse(self.put(mapped[:]))
        self.assertFalse(self.put(mapped.view(np.ndarray)))

    def test_that_are_shared_have_what_was_written_to_them(self):
        for mode in ("r+", "w+"):
            mapped = np.lib.format.open_memmap(
                self.path, mode, **({"shape": (4, 3), "dtype": "f8"} if mode == "w+" else {})
            )
            mapped[1] = 7
            self.put(mapped)

    def test_of_another_shape_order_or_start_are_written(self):
        mapped = np.load(self.path, mmap_mode="r")
        square = np.load(self.path, mmap_mode="r")[:3]
        for array in (mapped[1:], mapped[::2], mapped.T, mapped.reshape(3, 4), square.T):
            self.assertFalse(self.put(array))
        self.assertFalse(self.put(mapped.view(">f8")))
        self.assertFalse(self.put(mapped.view(np.int64)))
        shifted = np.memmap(self.path, np.float64, "r", offset=136, shape=(3, 3))
        self.assertFalse(self.put(shifted))

    def test_of_a_file_that_was_replaced_are_written_as_they_are(self):
        mapped = np.load(self.path, mmap_mode="r")
        np.save(self.folder / "other.npy", np.zeros((4, 3)))
        os.replace(self.folder / "other.npy", self.path)
        self.assertFalse(self.put(mapped))
        self.assertEqual(mapped[1, 1], 4)

    def test_of_a_file_that_was_cut_or_removed_say_so(self):
        large = self.folder / "large.npy"
        np.save(large, np.zeros((4096, 3)))
        mapped = np.load(large, mmap_mode="r")
        os.truncate(large, 4096)
        with self.assertRaisesRegex(gnnd.GnndError, "was cut to 4,096 bytes after it was mapped"):
            staging.put_array(self.folder, "out", mapped)
        mapped = np.load(self.path, mmap_mode="r")
        self.path.unlink()
        self.assertFalse(self.put(mapped))


class Networks(unittest.TestCase):
    def test_have_parts_of_a_split_by_many_names(self):
        given = ["train", "Training", "valid", "dev", "test", None, NAN, ""]
        found = networks.splits_of(given, lambda at: f"node {at}")
        self.assertEqual(
            [np.flatnonzero(found[key]).tolist() for key in found], [[0, 1], [2, 3], [4]]
        )
        with self.assertRaisesRegex(values.Unfit, "node 1 has 'trian'.*did you mean train"):
            networks.splits_of(["train", "trian"], lambda at: f"node {at}")


if __name__ == "__main__":
    unittest.main()
