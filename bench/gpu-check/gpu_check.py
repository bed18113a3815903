#!/usr/bin/env python3
"""What a machine with a GPU shows of gnnd, in stages: each a few processes with deadlines.

  gpu_check.py --bundle FILE.tar.xz       on a machine of ours: all that such a machine needs
  gpu_check.py --list                     the stages, and how long they take
  gpu_check.py [--out DIR] [--minutes M] [--stages build,operators,...]
  gpu_check.py --rehearse [...]           the same without a GPU: a simulated device poses as cuda:0
  gpu_check.py --device sim [...]         the same on simulated devices under their own name

On the machine: tar -xf FILE.tar.xz && python3 gnnd/bench/gpu-check/gpu_check.py --out DIR, with the
Python that has PyTorch (3.9 or later), CMake, ninja and a C++ compiler: the Trainer is compiled with
that PyTorch. The plug-in comes compiled; neither nvcc, Node nor a network is needed.

DIR/report.md and DIR/report.json are written after every process, so that one that hangs costs its
own deadline and nothing of what others found. A further command with the same DIR adds to them:
without --stages it runs those that did not end well before, so that several commands of ten minutes
(--minutes 9.5) do all. A stage that is run again stands there twice.
"""

import argparse
import signal
import sys
import time
from pathlib import Path

import bundle
from check import Check, Visit
from facts import facts_of
from report import Report
from stages import stages


def show(known):
    print(f"{'stage':<10} {'expected':>8}  what")
    for stage in known.values():
        print(f"{stage.name:<10} {stage.expected_s:>6} s  {stage.about}")
    total = sum(stage.expected_s for stage in known.values())
    print(f"{'all':<10} {total:>6} s  with a GPU and 16 cores")


def parsed(known):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="show the stages and end")
    parser.add_argument("--stages", help="which, in this order; others than are done by default")
    parser.add_argument("--out", type=Path, default=Path("gpu-check"), help="the report's folder")
    parser.add_argument("--minutes", type=float, default=float("inf"),
                        help="begin no stage that may not end within them")
    parser.add_argument("--device", choices=("cuda", "sim"), default="cuda")
    parser.add_argument("--rehearse", action="store_true", help="a simulated device is cuda:0")
    parser.add_argument("--bundle", type=Path, help="write the bundle there and end")
    parser.add_argument("--prebuilt", type=Path,
                        help="with --bundle: what was compiled already; else that is done now")
    options = parser.parse_args()
    names = [] if options.stages is None else options.stages.split(",")
    unknown = [name for name in names if name not in known]
    if unknown:
        parser.error(f"no such stage: {', '.join(unknown)}; there are {', '.join(known)}")
    if options.rehearse and options.device != "cuda":
        parser.error("--rehearse is for --device cuda; --device sim needs no rehearsal")
    return options, names


def visit(check, stage, report, seconds_left):
    """One stage; whatever is wrong with it is its own."""
    began = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    ends = time.monotonic() + min(stage.limit_s, seconds_left)
    check.visit = Visit(stage.name, ends, began, report.heads[-1]["device"])
    check.report = lambda: report.add(check.visit)
    try:
        stage.work(check)
    except Exception as error:  # pylint: disable=broad-except
        check.visit.skipped = f"gpu-check itself failed: {type(error).__name__}: {error}"
        for run in check.visit.runs[-1:]:
            run.outcome = "FAILED"
    check.report()
    why = f" ({check.visit.skipped})" if check.visit.skipped else ""
    print(f"{stage.name}: {check.visit.outcome}{why}", flush=True)
    return check.visit.outcome


def end(number, _):
    """Of the command, in its midst: what runs is killed with it."""
    raise SystemExit(f"ended by {signal.Signals(number).name}; what ran so far is in the report")


def main():
    if sys.version_info < (3, 9):
        raise SystemExit(f"Python {sys.version.split()[0]} is too old: 3.9 or later is needed")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, end)
    known = stages()
    options, names = parsed(known)
    if options.list:
        show(known)
        return 0
    if options.bundle is not None:
        size = bundle.write(options.bundle, options.prebuilt)
        print(f"{options.bundle}: {size / 1e6:.1f} MB")
        return 1 if options.bundle.suffix == ".xz" and size > bundle.MAX_BYTES else 0
    ends = time.monotonic() + options.minutes * 60
    try:
        check = Check(options.out.resolve(), options.device, options.rehearse)
        report = Report(check.out, {stage.name: stage.about for stage in known.values()})
        report.begin(facts_of(check))
        report.write()
    except OSError as error:
        raise SystemExit(f"no report can be written to {options.out} ({error.strerror}): name "
                         "another folder by --out") from None
    done = {name for name in known if (report.latest(name) or {}).get("outcome") == "OK"}
    outcomes, left = [], []
    for name in names or [name for name in known if name not in done]:
        seconds_left = ends - time.monotonic()
        if seconds_left < min(known[name].expected_s, known[name].limit_s):
            left.append(name)
            continue
        outcomes.append(visit(check, known[name], report, seconds_left))
    if left:
        print(f"left for the next command, for want of time: --stages {','.join(left)}")
    print(f"{check.out / 'report.md'}")
    return 0 if all(outcome in ("OK", "PARTLY", "SKIPPED") for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
