"""A file that networkx reads: GML, GraphML, GEXF, or JSON as `node_link_data` has it. Needs
networkx."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from gnnd_formats.graph import FormatError, Problem


def load(path: Path) -> Any:
    """The networkx graph of a file, by the end of its name."""
    try:
        import networkx as nx
    except ImportError:
        problem = Problem("NETWORKX", "needs networkx in Python: pip install networkx")
        raise FormatError(problem) from None
    readers = {
        ".gml": _gml,
        ".graphml": nx.read_graphml,
        ".gexf": nx.read_gexf,
        ".json": _node_link,
    }
    # Packed files are read by networkx as they are: graph.graphml.gz.
    kind = next((each for each in reversed(path.suffixes) if each in readers), None)
    if kind is None:
        text = f"expected a file that ends in {', '.join(readers)}"
        raise FormatError(Problem(path.name, text))
    try:
        return readers[kind](path)
    except (nx.NetworkXException, ParseError, ValueError, KeyError, TypeError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        text = f"networkx cannot read it as {kind[1:]}: {reason}"
        raise FormatError(Problem(path.name, text)) from None


def _gml(path: Path) -> Any:
    import networkx as nx

    try:
        return nx.read_gml(path)
    except nx.NetworkXError:
        # Nodes without a label of their own are called by their ids.
        return nx.read_gml(path, label="id")


def _node_link(path: Path) -> Any:
    import networkx as nx

    listed = json.loads(path.read_text(encoding="utf-8"))
    name = "links" if isinstance(listed, dict) and "links" in listed else "edges"
    if not isinstance(listed, dict) or not {"nodes", name} <= listed.keys():
        has = ", ".join(listed) if isinstance(listed, dict) else f"a {type(listed).__name__}"
        text = f"expected nodes and links, as networkx.node_link_data writes them; it has {has}"
        raise FormatError(Problem(path.name, text))
    return nx.node_link_graph(listed, edges=name)
