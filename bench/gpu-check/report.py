"""The report of gpu_check.py: every command adds what it found, and replaces nothing."""

import json
from pathlib import Path


class Report:
    """DIR/report.json and DIR/report.md. Visits of stages are in the order in which they came; one
    that was made again stands twice."""

    def __init__(self, folder, stages):
        self.folder = Path(folder)
        self.stages = stages  # by name: what it is about
        self.heads = []  # a command's facts, each
        self.visits = []
        self.added = None  # the visit that is the last entry
        path = self.folder / "report.json"
        if path.exists():
            try:
                kept = json.loads(path.read_text())
                self.heads, self.visits = kept["heads"], kept["visits"]
            except (ValueError, KeyError, TypeError):
                aside = path.with_name("report.unreadable.json")
                path.replace(aside)
                print(f"{path} could not be read and is {aside.name} now; a new one begins")

    def begin(self, facts):
        """A command's facts."""
        self.heads.append(facts)

    def add(self, visit):
        """Or, where it is the last one already, what has come to it."""
        entry = {
            "stage": visit.stage,
            "began": visit.began,
            "device": visit.device,
            "outcome": visit.outcome,
            "skipped": visit.skipped,
            "runs": [vars(run) | {"output": run.output[-4000:]} for run in visit.runs],
        }
        if visit is self.added:
            self.visits.pop()
        self.visits.append(entry)
        self.added = visit
        self.write()

    def latest(self, stage):
        """The last visit of a stage; None before the first one."""
        return next((one for one in reversed(self.visits) if one["stage"] == stage), None)

    def write(self):
        """Both files, replaced whole."""
        facts = {"heads": self.heads, "visits": self.visits}
        replace(self.folder / "report.json", json.dumps(facts, indent=2) + "\n")
        replace(self.folder / "report.md", self.markdown())

    def markdown(self):
        device = self.heads[-1]["device"] if self.heads else "no device"
        lines = [f"# gpu-check on {device}", "", *self.head(), "", *self.table()]
        for name, about in self.stages.items():
            visits = [one for one in self.visits if one["stage"] == name]
            if visits:
                lines += ["", f"## {name}", "", about, ""]
            for visit in visits:
                lines += visited(visit)
        return "\n".join(lines) + "\n"

    def head(self):
        """A column for each kind of machine that the commands ran on."""
        kinds = []
        for facts in self.heads:
            if facts not in kinds:
                kinds.append(facts)
        names = list(dict.fromkeys(name for facts in kinds for name in facts))
        rows = [["what", *(["value"] * len(kinds))], ["---"] * (1 + len(kinds))]
        rows += [[name, *(str(facts.get(name, "")) for facts in kinds)] for name in names]
        return [f"| {' | '.join(row)} |" for row in rows]

    def table(self):
        lines = ["| stage | outcome | seconds | began (UTC) | |", "|---|---|---|---|---|"]
        for name, about in self.stages.items():
            last = self.latest(name)
            if last is None:
                lines.append(f"| {name} | not run | | | {about} |")
                continue
            count = sum(one["stage"] == name for one in self.visits)
            again = f" (the last of {count})" if count > 1 else ""
            seconds = sum(run["seconds"] for run in last["runs"])
            why = f" {last['skipped']}." if last["skipped"] else ""
            lines.append(f"| {name} | {last['outcome']}{again} | {seconds:.0f} | {last['began']} "
                         f"| {about}{why} |")
        return lines


def visited(visit):
    lines = [f"On {visit['device']}, {visit['began']} UTC: {visit['outcome']}.", ""]
    if visit["skipped"]:
        lines += [f"Not run: {visit['skipped']}.", ""]
    for run in visit["runs"]:
        lines += [f"### {run['name']}: {run['outcome']}, {run['seconds']:.1f} s", ""]
        if run["outcome"] == "TIMEOUT":
            lines += [f"Killed at its deadline of {run['deadline_s']:.0f} s.", ""]
        if run["answers"]:
            lines += ["| what | value | unit |", "|---|---|---|"]
            lines += ["| {name} | {value} | {unit} |".format(**one) for one in run["answers"]]
            lines.append("")
        if run["outcome"] != "OK":
            lines += ["```", run["output"][-2000:].strip(), "```", ""]
    return lines


def replace(path, text):
    temporary = path.with_suffix(path.suffix + ".new")
    temporary.write_text(text)
    temporary.replace(path)
