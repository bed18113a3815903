"""What the package does without a daemon and without optional packages."""

import contextlib
import dataclasses
import importlib.metadata
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import numpy as np

import gnnd
from gnnd import (
    choices,
    client,
    connection,
    dataset,
    files,
    geometric,
    networks,
    saved,
    sources,
    spec,
    staging,
    tables,
    watch,
)
from gnnd.v1 import epoch_report_pb2, job_pb2, job_service_pb2


class Installation(unittest.TestCase):
    def test_needs_grpcio_numpy_and_protobuf_alone(self):
        needed = [
            re.match(r"\w+", text)[0]
            for text in importlib.metadata.requires("gnnd")
            if "extra ==" not in text
        ]
        self.assertEqual(sorted(needed), ["grpcio", "numpy", "protobuf"])
        script = "import gnnd, json, sys; print(json.dumps(sorted(sys.modules)))"
        loaded = json.loads(subprocess.check_output([sys.executable, "-c", script]))
        for optional in ("torch", "pandas", "scipy", "matplotlib", "IPython", "pyarrow"):
            self.assertNotIn(optional, loaded)

    def test_is_typed_and_says_its_version(self):
        names = {str(path) for path in importlib.metadata.files("gnnd")}
        self.assertLessEqual({"gnnd/py.typed", "gnnd/v1/job_spec_pb2.pyi"}, names)
        self.assertEqual(gnnd.__version__, importlib.metadata.version("gnnd"))

    def test_everything_public_says_what_it_is(self):
        for name in gnnd.__all__:
            self.assertTrue(getattr(gnnd, name).__doc__, name)
        for name, member in vars(gnnd.Job).items():
            if not name.startswith("_"):
                self.assertTrue(member.__doc__, name)


class Addresses(unittest.TestCase):
    def test_are_found_as_gnnctl_finds_them(self):
        self.assertEqual(connection.address_of(None, {}), "unix:/run/gnnd/gnnd.sock")
        here = {"XDG_RUNTIME_DIR": "/run/user/7"}
        self.assertEqual(connection.address_of(None, here), "unix:/run/user/7/gnnd/gnnd.sock")
        named = {"GNND_ADDRESS": "127.0.0.1:9465"}
        self.assertEqual(connection.address_of(None, named), "127.0.0.1:9465")
        self.assertEqual(connection.address_of("/a/b.sock", named), "unix:/a/b.sock")
        self.assertEqual(connection.address_of("unix:///a/b.sock", {}), "unix:/a/b.sock")
        self.assertEqual(connection.address_of("tcp://host:1", {}), "host:1")

    def test_the_daemon_that_is_advised_starts_with_what_its_address_needs(self):
        start = "npx gnnd serve --listen"
        self.assertEqual(connection.serve_command("unix:/a b"), f"{start} 'unix:/a b'")
        for own in ("localhost:4444", "127.0.0.1:4444", "[::1]:4444"):
            self.assertEqual(connection.serve_command(own), f"{start} {own} --insecure-loopback")
        far = f"{start} 0.0.0.0:4444 --tls-cert FILE --tls-key FILE, on gpu7"
        self.assertEqual(connection.serve_command("gpu7:4444"), far)

    def test_where_nobody_listens_say_what_to_do(self):
        with self.assertRaises(gnnd.Unavailable) as caught:
            gnnd.connect("unix:/nowhere/gnnd.sock")
        for remedy in ("npx gnnd serve --listen unix:/nowhere/gnnd.sock", "gnnd.local()"):
            self.assertIn(remedy, str(caught.exception))


class Versions(unittest.TestCase):
    def test_of_one_series_go_together(self):
        for ours, daemons in (("0.1.0", "0.1.9"), ("1.2.0", "1.4.1"), ("0.1.0", "0.1.0-rc.1")):
            client.check_versions(ours, daemons)

    def test_of_others_say_which_to_install(self):
        for ours, daemons in (("0.1.0", "0.2.0"), ("1.0.0", "2.0.0"), ("0.9.0", "1.0.0")):
            with self.assertRaises(gnnd.VersionMismatch) as caught:
                client.check_versions(ours, daemons)
            self.assertIn(f"pip install 'gnnd=={daemons}'", str(caught.exception))


class Specs(unittest.TestCase):
    def test_have_short_names_and_leave_out_what_is_not_set(self):
        model = gnnd.GAT(hidden=8, heads=2, dropout=0)
        made = spec.job_spec(
            spec.merged(
                model.spec(),
                {"dataset": "a", "training": {"epochs": np.int64(3), "optimizer": {"beta1": None}}},
                {"training": {"optimizer": {"type": "adamw", "learning_rate": np.float32(0.5)}}},
            )
        )
        self.assertTrue(made.model.HasField("dropout"))
        self.assertFalse(made.model.HasField("input_dropout"))
        self.assertEqual(
            spec.plain(made),
            {
                "dataset": "a",
                "model": {"type": "GAT", "hidden_dim": 8, "heads": 2, "dropout": 0.0},
                "training": {"epochs": 3, "optimizer": {"type": "ADAMW", "learning_rate": 0.5}},
            },
        )

    def test_are_refused_with_every_wrong_field(self):
        wrong = {
            "datset": "a",
            "model": {"type": "CNN", "layers": 2.5, "residual": 1},
            "sampling": {"fanouts": 5},
            "training": {"random_seed": -1, "epochs": True, "optimizer": 3},
            "evaluation": {"fanouts": [1, "x"]},
        }
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            spec.job_spec(wrong)
        found = {
            violation.field: violation.description for violation in caught.exception.violations
        }
        self.assertEqual(
            set(found),
            {
                *("spec.datset", "spec.model.type", "spec.model.layers", "spec.model.residual"),
                *("spec.sampling.fanouts", "spec.training.random_seed", "spec.training.epochs"),
                *("spec.training.optimizer", "spec.evaluation.fanouts[1]"),
            },
        )
        self.assertIn("did you mean dataset?", found["spec.datset"])
        self.assertIn("GRAPHSAGE", found["spec.model.type"])

    def test_of_every_model_are_fields_that_there_are(self):
        for kind in set(gnnd.models.__all__) - {"Model", "TorchScript"}:
            model = getattr(gnnd, kind)
            values = {field.name: 1 for field in dataclasses.fields(model)}
            texts = {"activation": "ELU", "normalization": "L2", "variant": "FUSED"}
            values |= {name: text for name, text in texts.items() if name in values}
            values |= {"residual": True} if "residual" in values else {}
            made = spec.job_spec(model(**values).spec())
            self.assertEqual(spec.plain(made)["model"]["type"], model.type)
            kinds = len(spec.plain(made)["model"]) + len(spec.plain(made).get("propagation", {}))
            self.assertEqual(kinds, len(values) + 1, model)
        script = spec.job_spec(gnnd.TorchScript(path="/srv/m.pt", layers=2).spec())
        self.assertEqual(script.model.script.path, "/srv/m.pt")


def report(epoch, **values):
    return epoch_report_pb2.EpochReport(epoch=epoch, **values)


def response(kind, revision, epochs=(), attempts=(), **job):
    made = job_service_pb2.WatchJobResponse(type=kind, revision=revision, epochs=epochs)
    if job:
        made.job.CopyFrom(job_pb2.Job(name="jobs/a", attempts=attempts, **job))
    made.attempt = len(attempts) if epochs else 0
    return made


class Watches(unittest.TestCase):
    """With a connection that breaks, as the daemon's tests have it, too."""

    def setUp(self):
        first = [job_pb2.Attempt(number=1)]
        second = [*first, job_pb2.Attempt(number=2, resumed=job_pb2.ResumePoint(epochs=2))]
        running, done = job_pb2.JOB_STATE_RUNNING, job_pb2.JOB_STATE_SUCCEEDED
        snapshot = job_service_pb2.WATCH_TYPE_SNAPSHOT
        changed, epochs = job_service_pb2.WATCH_TYPE_CHANGED, job_service_pb2.WATCH_TYPE_EPOCHS
        self.streams = [
            [
                response(snapshot, 5, [report(0)], first, state=running),
                response(epochs, 7, [report(1), report(2)], first),
            ],
            [response(changed, 8, attempts=second, state=running)],
            # Told again after a resume: epoch 2 of the second attempt is another one.
            [
                response(snapshot, 9, [report(0), report(1), report(2)], second, state=running),
                response(changed, 11, attempts=second, state=done),
            ],
        ]
        for stream in self.streams:
            for each in stream:
                each.attempt = 2 if stream is self.streams[2] else each.attempt
        self.asked = []

    metadata = (("authorization", "Bearer of-the-test"),)

    def WatchJob(self, request, metadata):  # noqa: N802
        self.assertEqual(metadata, self.metadata)
        self.asked.append(request.start_revision)

        class Call(list):
            def cancel(self):
                pass

        return Call(self.streams.pop(0))

    @property
    def jobs(self):
        return self

    def test_go_on_where_they_broke_and_tell_each_epoch_once(self):
        seen = [
            (update.attempt, each.epoch)
            for update in watch.updates(self, "jobs/a")
            for each in update.epochs
        ]
        self.assertEqual(self.asked, [0, 7, 8])
        self.assertEqual(seen, [(1, 0), (1, 1), (1, 2), (2, 2)])

    def test_show_a_line_an_epoch_where_there_is_no_terminal(self):
        shown = io.StringIO()
        display = watch.Display(shown)
        for update in watch.updates(self, "jobs/a"):
            display.show(update)
        lines = shown.getvalue().splitlines()
        self.assertEqual(sum("epoch " in line for line in lines), 4)
        self.assertTrue(lines[-1].startswith("a  SUCCEEDED"), lines)

    def test_move_a_bar_in_a_terminal(self):
        shown = io.StringIO()
        shown.isatty = lambda: True
        display = watch.Display(shown)
        for update in watch.updates(self, "jobs/a"):
            display.show(update)
        frames = shown.getvalue().split("\r\x1b[K")
        self.assertEqual(shown.getvalue().count("\n"), 1)
        self.assertIn("█" * watch.BAR_COLUMNS, frames[-1])


class Files(unittest.TestCase):
    def parts(self, *sizes):
        for index, size in enumerate(sizes):
            part = unittest.mock.Mock()
            part.WhichOneof.return_value = "file"
            part.file.name, part.file.bytes = f"{index}.bin", size
            yield part
            for start in range(0, size, 3):
                data = unittest.mock.Mock()
                data.WhichOneof.return_value = "data"
                data.data = bytes(min(3, size - start))
                yield data

    def test_of_a_stream_are_whole(self):
        found = files.to_memory(self.parts(7, 0, 3))
        self.assertEqual(
            {name: len(data) for name, data in found.items()},
            {
                "0.bin": 7,
                "1.bin": 0,
                "2.bin": 3,
            },
        )

    def test_that_break_off_are_an_error(self):
        cut = list(self.parts(7))[:-1]
        with self.assertRaisesRegex(gnnd.GnndError, "broke off within 0.bin"):
            files.to_memory(iter(cut))

    def test_of_predictions_come_in_the_order_asked_for(self):
        logits = np.arange(6, dtype=np.float32).reshape(3, 2)
        found = files.Predictions(np.array([2, 5, 9]), np.array([0, 1, 2]), logits)
        again = found.in_order_of([9, 2, 9])
        self.assertEqual(again.classes.tolist(), [2, 0, 2])
        self.assertEqual(again.logits.tolist(), [[4, 5], [0, 1], [4, 5]])

    def test_of_predictions_have_names_of_one_class_of_labels_or_none(self):
        def names(classes):
            return files.Predictions(np.arange(2), classes, class_names=["a", "b", "c"]).names

        self.assertEqual(names(np.array([2, 0])), ["c", "a"])
        several = np.array([[1, 0, 1], [0, 0, 0]], np.uint8)
        self.assertEqual(names(several), [["a", "c"], []])
        self.assertIsNone(names(np.zeros((2, 3), np.float32)))


class Arrays(unittest.TestCase):
    def test_that_are_mapped_files_are_linked_and_others_written_once(self):
        with staging.staging_folder(None, "/tmp/x/state") as folder:
            np.save(folder / "whole.npy", np.ones((4, 2), np.float32))
            whole = np.load(folder / "whole.npy", mmap_mode="r")
            self.assertTrue(staging.put_array(folder, "a", whole))
            same = (folder / "a.npy").stat().st_ino == (folder / "whole.npy").stat().st_ino
            self.assertTrue(same)
            foreign = np.arange(3, dtype=">i8")
            parts = {"b": whole[1:], "c": whole[::2], "d": whole.T, "e": foreign}
            for name, part in parts.items():
                self.assertFalse(staging.put_array(folder, name, part))
                self.assertTrue(np.array_equal(np.load(folder / f"{name}.npy"), part))
        self.assertFalse(folder.exists())

    def test_of_another_host_need_a_folder(self):
        staging.require_shared(True, None)
        staging.require_shared(False, "/shared")
        with self.assertRaisesRegex(gnnd.GnndError, "staging='/shared/folder'"):
            staging.require_shared(False, None)


class Sources(unittest.TestCase):
    """Of libraries by their interfaces; test_sources.py has the libraries that can be had."""

    def test_say_what_is_missing_and_what_is_not_known(self):
        class Data:
            x = np.ones((3, 2))
            y = np.array([0, 1, 0])
            edge_index = np.array([[0, 1], [1, 2]])

        lacking = (
            r"train_mask, give it as train=…, or have one by chance, random_split=\(0.2, 0.2\)"
        )
        with self.assertRaisesRegex(gnnd.GnndError, lacking):
            sources.from_pyg(Data(), {})
        found = sources.from_pyg(Data(), {"train": [0], "val": [1], "staging": "/x"})
        self.assertEqual(set(found.arrays), {"features", "labels", "edge_index", "train", "val"})

    def test_that_cannot_be_meant_are_refused_with_the_remedy(self):
        graph = unittest.mock.Mock(nodes={"a": {"x": [1.0]}}, **{"edges.return_value": []})
        with self.assertRaisesRegex(gnnd.GnndError, "no node has 'feat'; there are: x"):
            networks.from_networkx(graph, {"features": "feat"})

    def test_of_pyg_keep_the_weights_of_an_adjacency_and_tell_of_edge_features(self):
        rows = unittest.mock.Mock(
            **{
                "crow_indices.return_value": np.array([0, 1, 2]),
                "col_indices.return_value": np.array([1, 0]),
                "values.return_value": np.array([0.5, 2.0]),
            }
        )
        adjacency = unittest.mock.Mock(spec=["to_sparse_csr"], **{"to_sparse_csr": lambda: rows})
        data = unittest.mock.Mock(
            spec=["x", "y", "adj_t", "edge_index", "edge_attr", "train_idx", "val_idx"]
        )
        data.x, data.y, data.adj_t = np.ones((2, 1)), np.array([0, 1]), adjacency
        data.edge_attr, data.train_idx, data.val_idx = np.ones((2, 3)), [0], [1]
        data.edge_index = None
        found = sources.from_pyg(data, {})
        self.assertRegex(found.notices[0], "edge_attr is not used")
        self.assertEqual(found.arrays["edge_weights"].tolist(), [0.5, 2.0])

    def test_have_choices_by_their_names(self):
        def asked(**given):
            return choices.request_of("a", "/a", given)

        numbers = [asked(task=task).task for task in (None, "classification", "multi-label")]
        self.assertEqual(numbers, [0, 1, 2])
        self.assertEqual(dataset.task_of(3), "REGRESSION")
        self.assertEqual(dataset.task_of(0), "CLASSIFICATION")
        self.assertEqual(asked(feature_dtype=np.float16).feature_dtype, 2)
        self.assertEqual(asked(made_features="identity", split=3).made_features, 2)
        split = asked(random_split=(0.25, 0.5, 7), ignored_columns=["a"]).random_split
        self.assertEqual((split.validation, split.test, split.random_seed), (0.25, 0.5, 7))
        with self.assertRaises(ValueError) as caught:
            asked(
                task="ranking",
                random_split=(0.5, 0.6),
                made_features="degrees",
                ignored_columns="age",
                feature_dtype="float23",
            )
        found = {each.field: each.description for each in caught.exception.violations}
        tasks = "CLASSIFICATION, MULTI_LABEL, REGRESSION"
        self.assertEqual(
            found,
            {
                "feature_dtype": "'float23': expected 'float32' or 'float16'",
                "task": f"'ranking': expected one of {tasks}",
                "made_features": "'degrees': expected one of degree, identity; did you mean "
                "degree?",
                "random_split": "(0.5, 0.6): expected shares of 0 or more, together less than 1",
                "ignored_columns": "'age': expected a list of names of columns",
            },
        )

    def test_of_dgl(self):
        class Graph:
            ntypes, etypes = ["_N"], ["_E"]
            ndata = {"feat": np.ones((2, 1)), "label": np.array([0, 1])}
            edata = {"w": np.array([0.5])}

            def edges(self, order):
                assert order == "eid"
                return np.array([0]), np.array([1])

        Graph.ndata |= {"train_mask": np.array([True, False]), "val_mask": np.array([False, True])}
        found = sources.from_dgl(Graph(), {}).arrays
        self.assertEqual(found["edge_index"].tolist(), [[0], [1]])
        self.assertEqual(found["edge_weights"].tolist(), [0.5])
        Graph.etypes = ["a", "b"]
        with self.assertRaisesRegex(gnnd.GnndError, "dgl.to_homogeneous"):
            sources.from_dgl(Graph(), {})

    def test_of_ogb(self):
        class Dataset:
            def __getitem__(self, index):
                graph = {"edge_index": np.array([[0], [1]]), "node_feat": np.ones((2, 3))}
                return graph, np.array([[0], [1]])

            def get_idx_split(self):
                return {"train": np.array([0]), "valid": np.array([1]), "test": np.array([])}

        found = sources.from_ogb(Dataset(), {}).arrays
        self.assertEqual(found["labels"].tolist(), [[0], [1]])
        self.assertEqual(found["val"].tolist(), [1])


class Saved(unittest.TestCase):
    def test_sparse_archives_become_edges_both_ways_and_dense_features(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "graph.npz")
            np.savez(
                path,
                adj_data=np.ones(3),
                adj_indices=[1, 2, 0],
                adj_indptr=[0, 2, 2, 3],
                adj_shape=[3, 3],
                attr_data=[0.5, 2],
                attr_indices=[1, 0],
                attr_indptr=[0, 1, 1, 2],
                attr_shape=[3, 2],
                labels=[0, 1, 0],
            )

            def made(options, directed=False):
                found = saved.graph_in("BENCHMARK_NPZ", path, directed)
                return sources.from_file(found, options)

            graph = made({"train": [0], "val": [1]})
            self.assertEqual(graph.arrays["edge_index"].tolist(), [[0, 0, 1, 2], [1, 2, 0, 0]])
            self.assertEqual(graph.arrays["features"].tolist(), [[0, 0.5], [0, 0], [2, 0]])
            self.assertRegex(graph.notices[0], "both directions.*1 were added")
            self.assertNotIn("edge_weights", graph.arrays)
            ends = made({"random_split": (0.2, 0.2)}, directed=True).arrays["edge_index"]
            self.assertEqual(ends.tolist(), [[0, 0, 2], [1, 2, 0]])
            with self.assertRaisesRegex(gnnd.GnndError, "no train, give it as train=…, or"):
                made({})
            np.savez(path, x=[1])
            with self.assertRaisesRegex(gnnd.GnndError, "lacks adj_indptr and adj_indices"):
                made({})
            path.write_bytes(b"no archive")
            with self.assertRaisesRegex(gnnd.GnndError, "graph.npz: is no .npz file"):
                made({})
            path.unlink()
            with self.assertRaisesRegex(gnnd.GnndError, "graph.npz: there is no such file$"):
                made({})


class Missing(unittest.TestCase):
    def test_packages_are_named_with_the_command_that_gets_them(self):
        with self.assertRaisesRegex(gnnd.MissingPackage, r"gnnd\[pyg\]"):
            geometric.tensors({})
        with self.assertRaisesRegex(gnnd.MissingPackage, r"gnnd\[pandas\]"):
            tables.put_frame(pathlib.Path(), "nodes", {})
        with self.assertRaisesRegex(gnnd.MissingPackage, r"gnnd\[pyg\]"):
            saved.torch_graph("data.pt")


class Locals(unittest.TestCase):
    def test_say_how_gnnd_is_found(self):
        with contextlib.ExitStack() as stack:
            without = {"PATH": "/nowhere", "GNND_COMMAND": ""}
            patched = unittest.mock.patch.dict("os.environ", without)
            stack.enter_context(patched)
            stack.enter_context(self.assertRaisesRegex(gnnd.GnndError, "GNND_COMMAND"))
            gnnd.local()

    def test_say_why_a_daemon_did_not_start(self):
        with self.assertRaisesRegex(gnnd.GnndError, "no such thing"):
            gnnd.local(command=["sh", "-c", "echo no such thing >&2; exit 78"])


if __name__ == "__main__":
    unittest.main()
