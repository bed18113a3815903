"""Reports of what is predicted beside what is known, by hand and without a daemon."""

import unittest

import numpy as np

from gnnd import report


class Reports(unittest.TestCase):
    def test_of_classes(self):
        labels, said = np.array([0, 0, 0, 1, 1, 2, -1]), np.array([0, 0, 1, 1, 1, 0, 2])
        found = report.compared("CLASSIFICATION", said, labels, ["cat", "dog", "eel"])
        self.assertEqual(found.confusion.tolist(), [[2, 1, 0], [0, 2, 0], [1, 0, 0]])
        self.assertEqual(found.accuracy, 4 / 6)
        self.assertEqual(found.precision.tolist(), [2 / 3, 2 / 3, 0])
        self.assertEqual(found.recall.tolist(), [2 / 3, 1, 0])
        self.assertEqual(found.f1.tolist(), [2 / 3, 0.8, 0])
        self.assertEqual(found.support.tolist(), [3, 2, 1])
        lines = repr(found).split("\n")
        self.assertEqual(lines[1].split(), ["cat", "0.6667", "0.6667", "0.6667", "3"])
        self.assertEqual(lines[4].split(), ["mean", "0.4444", "0.5556", "0.4889", "6"])
        self.assertEqual(lines[5].split(), ["by", "nodes", "0.5556", "0.6667", "0.6000", "6"])
        self.assertEqual(lines[-1].split(), ["eel", "1", "0", "0"])
        many = report.compared("CLASSIFICATION", said, labels, [str(at) for at in range(20)])
        self.assertEqual(
            [line.split() for line in str(many).split("\n")[-2:]], [list("011"), list("201")]
        )

    def test_of_labels_leave_out_those_that_are_not_known(self):
        labels = np.array([[1, 0], [1, 255], [0, 1]], np.uint8)
        said = np.array([[1, 1], [0, 1], [0, 1]], np.uint8)
        found = report.compared("MULTI_LABEL", said, labels, ["a", "b"])
        self.assertEqual(found.support.tolist(), [2, 1])
        self.assertEqual(found.precision.tolist(), [1, 0.5])
        self.assertEqual(found.recall.tolist(), [0.5, 1])
        self.assertIsNone(found.confusion)

    def test_of_numbers(self):
        labels = np.array([[1, 5], [2, np.nan]], np.float32)
        said = np.array([[2, 5], [5, 7]], np.float32)
        found = report.compared("REGRESSION", said, labels, ["a", "b"])
        self.assertEqual(found.mae.tolist(), [2, 0])
        self.assertTrue(np.allclose(found.rmse, [5**0.5, 0]))
        self.assertEqual(found.support.tolist(), [2, 1])
        self.assertRegex(str(found), r"mae +rmse +nodes\na +2\.0000 +2\.2361 +2")


if __name__ == "__main__":
    unittest.main()
