"""docs/python.ipynb, docs/python.md and docs/first-minutes.md, run cell by cell and block by block.

usage: test_pages.py, with GNND_ADDRESS and GNND_COMMAND, CORA and what test_extras.py needs.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import tempfile
import unittest
import unittest.mock

import matplotlib as mpl
from test_extras import TOLERANCE, pyg_data

DOCS = pathlib.Path(os.environ["CORA"]).parents[2] / "docs"


class Pages(unittest.TestCase):
    def setUp(self):
        mpl.use("Agg")
        settings = {
            "GNND_CPU_DEVICES": "2",
            "GNND_SHARE_CORES": "true",
            "GNND_CUDA_DEVICES": "none",
        }
        self.enterContext(unittest.mock.patch.dict(os.environ, settings))
        self.enterContext(contextlib.chdir(self.enterContext(tempfile.TemporaryDirectory())))

    def run_all(self, parts, names):
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            for number, part in enumerate(parts):
                exec(compile(part, f"part {number}", "exec"), names)
        return shown.getvalue()

    def test_the_notebook(self):
        cells = json.loads((DOCS / "python.ipynb").read_text())["cells"]
        parts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        self.assertGreater(len(parts), 8)
        names = {}
        self.run_all(parts, names)
        self.assertGreater(names["accuracy"], 0.7)
        self.assertAlmostEqual(names["accuracy"], names["job"].message.result.test_accuracy_best)
        self.assertLess(names["difference"], TOLERANCE)
        self.assertTrue(names["same"])
        self.assertEqual(len(names["history"]), 15)

    def test_the_first_minutes(self):
        # The first block is that of the wheel (test/long/wheel.test.ts).
        _, part = re.findall(r"```python\n(.*?)```", self.text_of("first-minutes.md"), re.DOTALL)
        self.assertLess(len([line for line in part.splitlines() if line.strip()]), 15)
        names = {"data": pyg_data()}
        self.run_all([part], names)
        self.assertEqual(type(names["module"]).__name__, "GCN")
        self.assertGreater(names["accuracy"], 0.75)
        self.assertAlmostEqual(names["accuracy"], names["job"].message.result.test_accuracy_best, 3)

    def test_the_readme(self):
        (part,) = re.findall(r"```python\n(.*?)```", self.text_of("../README.md"), re.DOTALL)
        names = {}
        shown = self.run_all([part], names)
        self.assertRegex(shown, r"(8|9|10)\d% \['Mr. Hi', 'Officer'\]\n$")
        self.assertIn("convs.0.bias", names["weights"])
        self.assertIn("GCN", repr(names["job"].to_pyg()))
        names["client"].close()

    def text_of(self, name):
        return (DOCS / name).read_text()

    def test_the_page(self):
        text = self.text_of("python.md")
        # The daemon is that of other tests, too, and jobs keep their names.
        text = text.replace('name="first"', 'name="of-the-page"')
        parts = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        self.assertGreater(len(parts), 4)
        names = {"pyg_data": pyg_data()}
        said = self.run_all(parts, names)
        promised = re.findall(r"```\n((?:spec|gnnd)\..*?)```", text, re.DOTALL)
        self.assertEqual(len(promised), 2)
        for part in promised:
            self.assertIn(part, said)
        self.assertEqual(len(names["predictions"]), 3)
        self.assertEqual(type(names["module"]).__name__, "GraphSAGE")
        lines = pathlib.Path("history.jsonl").read_text().splitlines()
        self.assertEqual(len(lines), names["job"].message.result.epochs)
        names["client"].close()


if __name__ == "__main__":
    unittest.main()
