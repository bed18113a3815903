"""What the package says of calls that it refuses itself: everything at once, by name."""

import copy
import dataclasses
import pickle
import unittest

import numpy as np

import gnnd
from gnnd import choices, client, sources, spec, words


class Refusals(unittest.TestCase):
    def refused(self, call):
        """Violations of a call by field."""
        with self.assertRaises(gnnd.InvalidRequest) as caught:
            call()
        self.assertIsInstance(caught.exception, ValueError)
        self.message = caught.exception.message
        return {each.field: each.description for each in caught.exception.violations}

    def submit(self, *args, **options):
        """On a client that would fail at anything that it asks a daemon."""
        return self.refused(lambda: client.Client.__new__(client.Client).submit(*args, **options))


class Models(Refusals):
    def test_say_what_they_take_and_what_others_call_it(self):
        found = self.refused(
            lambda: gnnd.GCN(hidden_channels=64, numLayers=2, hiden=3, in_channels=9, jk="cat")
        )
        self.assertEqual(
            self.message,
            "gnnd.GCN takes layers, hidden, dropout, input_dropout, activation, normalization, "
            "residual",
        )
        self.assertEqual(
            found,
            {
                "hidden_channels": "there is no such keyword; it is called hidden here",
                "numLayers": "there is no such keyword; it is called layers here",
                "hiden": "there is no such keyword; did you mean hidden?",
                "in_channels": "there is no such keyword; it follows from the dataset",
                "jk": "there is no such keyword",
            },
        )
        self.assertEqual(
            set(self.refused(lambda: gnnd.GAT(64, 2, heeds=1))), {"[0]", "[1]", "heeds"}
        )
        # A keyword of another model is no keyword of this one.
        self.assertIn("num_heads", self.refused(lambda: gnnd.GCN(num_heads=2)))

    def test_are_values_all_the_same(self):
        model = gnnd.GAT(hidden=8, heads=2)
        self.assertEqual(pickle.loads(pickle.dumps(copy.deepcopy(model))), model)
        self.assertEqual(dataclasses.replace(model, heads=4).heads, 4)

    def test_of_other_libraries_names_are_models_and_arguments_here(self):
        known = {field.name for kind in models() for field in dataclasses.fields(kind)}
        known |= {kind.type for kind in models()} | set(submits())
        self.assertLessEqual(set(words._FOREIGN.values()), known)


def models():
    return [
        value
        for value in vars(gnnd).values()
        if isinstance(value, type(gnnd.GCN))
        and issubclass(value, gnnd.Model)
        and value is not gnnd.Model
    ]


def submits():
    return client.Client.submit.__wrapped__.__kwdefaults__


class Submissions(Refusals):
    def test_are_refused_with_everything_that_is_wrong(self):
        found = self.submit(
            *("cora", gnnd.GCN),
            **{"epochs": "3", "fanouts": "10,5", "batch_size": 2.5, "standardize": True, "name": 5},
            **{"lr": 0.1, "epcohs": 3, "momentum": 0.9, "hidden": 3, "colour": "red"},
            **{"training": 5, "sampling": {"algoritm": "LABOR"}, "metric": "AUC"},
        )
        self.assertEqual(self.message, "the spec is wrong (docs/job-spec.md has all fields)")
        metrics = (
            "AUTO, ACCURACY, MICRO_F1, MACRO_F1, ROC_AUC, AVERAGE_PRECISION, MAE, RMSE, MRR, "
            "HITS_1, HITS_3, HITS_10, HITS_20, HITS_50, HITS_100"
        )
        none, argument = "there is no such argument", "expected an integer"
        self.assertEqual(
            found,
            {
                "model": "GCN is a class: expected a model, gnnd.GCN()",
                "name": "5: expected a text",
                "lr": f"{none}; it is called learning_rate here",
                "epcohs": f"{none}; did you mean epochs?",
                "momentum": f"{none}; it goes in as training={{'optimizer': {{'momentum': …}}}}",
                "hidden": f"{none}; it is the model's, such as gnnd.GAT(hidden=…)",
                "colour": found["colour"],
                "training": "5: expected a mapping of its fields",
                "spec.training.epochs": f"'3': {argument}",
                "spec.training.batch_size": f"2.5: {argument}",
                "spec.features.standardize": "True: expected one of AUTO, ON, OFF; it is called "
                "ON here",
                "spec.sampling.fanouts": "'10,5': expected a list",
                "spec.sampling.algoritm": "there is no such field; did you mean algorithm?",
                "spec.evaluation.metric": f"'AUC': expected one of {metrics}; did you mean "
                "ROC_AUC?",
            },
        )
        self.assertRegex(found["colour"], f"^{none}; there are task, .*, and sections: links, ")
        found = self.submit(np.zeros((99, 99)), "GCN", epochs=1)
        self.assertRegex(found["model"], r"^'GCN': expected a model, gnnd.GCN\(\); there are ")
        self.assertRegex(found["spec.dataset"], r"^array\(.{60,80}\.\.\.: expected a text$")

    def test_name_the_models_that_there_are_and_the_nearest(self):
        for word, meant in {
            "GIN": "gnnd.GIN()",
            "SAGEConv": "gnnd.GraphSAGE()",
            "gatv3": "gnnd.GATv2()",
            "MLPMixer": "such as gnnd.GCN()",
        }.items():
            said = self.submit("cora", word, epochs=1)["model"]
            self.assertTrue(said.startswith(f"'{word}': expected a model, {meant}; there are "))
            for kind in models():
                self.assertIn(kind.__name__, said)
            self.assertRegex(said, r"\(docs/choosing.md\)$")

    def test_say_what_there_is_instead_of_what_others_have(self):
        asked = {"task": "LINK_PREDICTION", "loss": "bce", "shuffle": True, "num_workers": 4}
        found = self.submit("cora", gnnd.GCN(), epochs=1, **asked)
        self.assertEqual(found.keys(), asked.keys())
        self.assertRegex(
            found["task"], r"^'LINK_PREDICTION': expected gnnd.Links\(\), gnnd.LinkLabels\(\), or"
        )
        self.assertRegex(found["loss"], "^there is no such argument; what is learnt of nodes")
        self.assertRegex(found["loss"], "whole graphs are not there$")
        wrong = {"task": "x", "sampling": {"algorithm": "NeighborSampler"}}
        found = self.refused(lambda: spec.job_spec(wrong))
        self.assertRegex(found["spec.task"], "^'x': expected one of NODES, LINKS")
        self.assertRegex(found["spec.sampling.algorithm"], "; it is called KHOP_UNIFORM here$")

    def test_of_whole_specs_say_where_a_field_is(self):
        where = {"spec": "'job.yaml': expected a mapping of its fields"}
        self.assertEqual(self.refused(lambda: spec.job_spec("job.yaml")), where)
        found = self.refused(
            lambda: spec.job_spec(
                {
                    "lr": 1,
                    5: 1,
                    "model": {"hidden_channels": 1, "seed": 1, "type": "SAGEConv"},
                    "training": {"patience": 3},
                }
            )
        )
        none = "there is no such field"
        self.assertEqual(
            found["spec.lr"], f"{none}; did you mean spec.training.optimizer.learning_rate?"
        )
        self.assertEqual(
            found["spec.model.hidden_channels"], f"{none}; it is called hidden_dim here"
        )
        self.assertEqual(
            found["spec.model.seed"], f"{none}; did you mean spec.training.random_seed?"
        )
        patience = f"{none}; did you mean spec.training.early_stop.patience_epochs?"
        self.assertEqual(found["spec.training.patience"], patience)
        self.assertRegex(found["spec.model.type"], "it is called GRAPHSAGE here$")
        first = "there are kind, inference, load, task, links, dataset, model"
        self.assertRegex(found["spec.5"], first)

    def test_take_numbers_as_arrays_have_them(self):
        made = spec.job_spec(
            {
                "preemptible": np.bool_(True),
                "sampling": {"fanouts": np.array([3, -1])},
                "training": {"batch_size": np.array(3), "optimizer": {"beta1": np.array(0.5)}},
            }
        )
        self.assertTrue(made.preemptible)
        self.assertEqual(list(made.sampling.fanouts), [3, -1])
        self.assertEqual((made.training.batch_size, made.training.optimizer.beta1), (3, 0.5))
        wrong = {"batch_size": np.array([3, 4]), "epochs": np.array(0.5), "staleness": 2**40}
        found = self.refused(lambda: spec.job_spec({"training": wrong}))
        self.assertEqual(found["spec.training.epochs"], "array(0.5): expected an integer")
        self.assertEqual(found["spec.training.batch_size"], "array([3, 4]): expected an integer")
        self.assertRegex(found["spec.training.staleness"], "from -2147483648 to 2147483647$")


class Imports(Refusals):
    def test_say_all_that_a_graph_lacks(self):
        class Data:
            def __init__(self):
                self.x, self.y = np.ones((3, 2)), np.array(["a", "b", "a"])
                self.edge_index = np.array([[0, 1], [1, 2]])
                self.training_mask = np.array([True, False, False])

        found = self.refused(lambda: sources.from_pyg(Data(), {"trian": [0], "sourc": 1}))
        none = "there is no such option of an import"
        self.assertEqual(
            found,
            {
                "trian": f"{none}; did you mean train?",
                "sourc": found["sourc"],
                "train": "the data has no train_mask, give it as train=…, or have one by chance, "
                "random_split=(0.2, 0.2); did you mean training_mask?",
            },
        )
        self.assertRegex(found["sourc"], f"^{none}; there are features, labels, ")
        self.assertRegex(self.message, r"\(docs/datasets.md\)$")
        arrays = {"features": [[1], [2]], "edge_index": [[0], [1]], "node_names": ["a", "b\nc"]}
        found = self.refused(lambda: sources.from_arrays(arrays))
        text = "'b\\nc': expected a text without line breaks"
        self.assertEqual(found, {"node_names[1]": text})
        found = self.refused(lambda: sources.from_arrays({**arrays, "node_names": ["a"] * 3}))
        again = "is the name of node 0, too: expected another one for each node"
        wanted = {f"node_names[{at}]": f"'a': {again}" for at in (1, 2)}
        wanted["node_names"] = "has 3 names: expected one for each of 2 nodes"
        self.assertEqual(found, wanted)

    def test_say_what_was_typed_and_what_is_there(self):
        client_ = client.Client.__new__(client.Client)
        found = self.refused(lambda: client_.import_arrays("a", lables=[0], features=[[1]]))
        self.assertEqual(found, {"lables": "there is no such argument; did you mean labels?"})
        found = self.refused(lambda: client_.import_path("/tmp"))
        self.assertRegex(found["arguments"], "missing a required argument: 'name'.*path, name,")

        found = self.refused(lambda: client_.import_path("/tmp", "a", colour=1))
        self.assertRegex(found["colour"], "^there is no such argument; there are path, name,")
        found = self.refused(lambda: choices.request_of("a", "/tmp", {"task": "LINK_PREDICTION"}))
        expected = "expected one of CLASSIFICATION, MULTI_LABEL, REGRESSION"
        only = "all are of nodes: a job learns links by itself (task=gnnd.Links())"
        self.assertEqual(found, {"task": f"'LINK_PREDICTION': {expected}; {only}"})

        class Odd:
            ntypes = etypes = edges = None

            @property
            def ndata(self):
                return {}["nothing"]

        found = self.refused(lambda: client_.import_dgl(Odd(), "a"))
        self.assertRegex(found["graph"], "Odd.*KeyError while it was read: 'nothing'")


if __name__ == "__main__":
    unittest.main()
