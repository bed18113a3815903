#!/usr/bin/env python3
"""Whole jobs on devices of one kind, through a daemon, as a user runs them.

  jobs.py whole|crews|killed --node NODE --addons DIR --device cuda|sim --data FILE.npz --folder DIR
          [--epochs N]

whole: a Sampler and a Trainer on two logical devices of the first one, and the same on CPU devices;
crews: all splits that two logical devices on each of the first two devices allow, or four on the only
one; killed: Trainers die in mid-job. Prints an answer a line, {"name", "value", "unit"}. Exit code 1
when a job fails, when two crews of one kind differ in a bit, when a model whose Trainers are the
CPU's differs from the CPU's own (the samples were not equal then), or when metrics are further apart
than another order of sums explains.
"""

import os
import signal
import sys

from daemon import Daemon, answered, parser_of, say

# Of test accuracies: cora has 1,000 test nodes.
MOST_APART = 0.05
# Of the first epoch's mean losses, which no later step has moved apart.
LOSS_APART = 0.02


def spec_of(members, epochs):
    return {
        "dataset": "graph",
        "model": {"type": "GRAPHSAGE", "hidden_dim": 64, "dropout": 0.5},
        "sampling": {"fanouts": [10, 5]},
        "cache": {"ratio": 0.2},
        "training": {"epochs": epochs, "batch_size": 32, "batches_per_step": 1, "random_seed": 7},
        **members,
    }


def split(device, samplers, trainers, **more):
    return {
        "resources": {"device_kind": device.upper(), "devices": samplers + trainers},
        "placement": {"policy": "FIXED", "samplers": samplers, "standby": "OFF", **more},
    }


def named(*names):
    return {
        "resources": {"device_names": list(names)},
        "placement": {"policy": "FIXED", "samplers": 1, "standby": "OFF"},
    }


ON_CPU = {"resources": {"device_kind": "CPU", "devices": 2}}


def crews_of(device):
    """By name: who samples and who trains."""
    first = f"{device}:0/0"
    return {
        "cpu": ON_CPU,
        f"1+1 {device}": split(device, 1, 1),
        f"2+2 {device}": split(device, 2, 2),
        f"2+1 {device}, standby Trainers": split(device, 2, 1, standby="ALWAYS"),
        f"one {device}, alternating": {
            "resources": {"device_kind": device.upper(), "devices": 1}},
        f"CPU samples, {device} trains": named("cpu:0", first),
        f"{device} samples, CPU trains": named(first, "cpu:0"),
    }


def trains_on(name):
    return "cpu" if name == "cpu" or name.endswith("CPU trains") else "device"


def told(name, job, stages):
    """Answers of a job that succeeded; its test accuracy."""
    accuracy = float(job["result"]["testAccuracyBest"])
    seconds = sum(float(epoch["durationMs"]) for epoch in job["epochs"]) / 1000
    say(f"{name}: test accuracy", round(accuracy, 4))
    say(f"{name}: epochs", round(seconds, 3), "s")
    for stage, busy in sorted(stages.items()):
        if busy > 0:
            say(f"{name}: stage {stage}", round(busy, 3), "s")
    say(f"{name}: model", job["result"]["parametersSha256"][:16])
    return accuracy


def whole(daemon, options):
    """What is wrong, a sentence each."""
    kinds = {"cpu": ON_CPU, options.device: split(options.device, 1, 1)}
    accuracies, losses = {}, {}
    for name, members in kinds.items():
        job, stages = daemon.run(f"whole-{name}", spec_of(members, options.epochs))
        accuracies[name] = told(name, job, stages)
        losses[name] = [float(epoch["loss"]) for epoch in job["epochs"]]
    say("loss of each epoch, cpu", " ".join(f"{loss:.5f}" for loss in losses["cpu"]))
    say(f"loss of each epoch, {options.device}",
        " ".join(f"{loss:.5f}" for loss in losses[options.device]))
    wrong = far(accuracies)
    first = [own[0] for own in losses.values()]
    if abs(first[0] - first[1]) > LOSS_APART * abs(first[0]):
        wrong.append(f"the first epoch's losses differ: {first}")
    return wrong


def far(accuracies):
    spread = max(accuracies.values()) - min(accuracies.values())
    say("largest difference of test accuracies", round(spread, 4))
    return [f"test accuracies differ by {spread:.3f}"] if spread > MOST_APART else []


def crews(daemon, options):
    """Likewise."""
    digests, accuracies, wrong = {}, {}, []
    for index, (name, members) in enumerate(crews_of(options.device).items()):
        job, stages = daemon.run(f"crew-{index}", spec_of(members, options.epochs))
        accuracies[name] = told(name, job, stages)
        digests.setdefault(trains_on(name), {})[name] = job["result"]["parametersSha256"]
    for kind, models in digests.items():
        if len(set(models.values())) > 1:
            wrong.append(f"models that train on the {kind} differ: {models}")
    return wrong + far(accuracies)


def killed(daemon, options):
    """Likewise."""
    epochs = options.epochs
    for trial in range(3):
        models = {f"a Trainer of {trainers} killed":
                  killed_model(daemon, f"killed-{trainers}-{trial}", trainers, epochs)
                  for trainers in (2, 1)}
        if None not in models.values():
            break
        epochs *= 8
    else:
        return [f"jobs of {epochs // 8} epochs were over before anybody could be killed"]
    job, _ = daemon.run("undisturbed", spec_of(split(options.device, 1, 1), epochs))
    models["undisturbed"] = job["result"]["parametersSha256"]
    for name, model in models.items():
        say(f"{name}: model", model[:16])
    return [f"models differ: {models}"] if len(set(models.values())) > 1 else []


def killed_model(daemon, name, trainers, epochs):
    """Of a job one of whose Trainers dies in its midst; None where it was over before."""
    dead = []

    def kill(job):
        trains = [one for one in job.get("progress", {}).get("executors", [])
                  if one["role"] == "EXECUTOR_ROLE_TRAINER" and int(one.get("batches", 0)) > 2]
        if trains and not dead:
            os.kill(trains[-1]["pid"], signal.SIGKILL)
            dead.append(trains[-1])

    daemon.create(name, spec_of(split(daemon.device, 1, trainers), epochs))
    job, _ = daemon.end_of(name, kill)
    if not dead:
        return None
    say(f"a Trainer of {trainers} killed: died on", dead[0]["device"],
        f"after {dead[0]['batches']} batches")
    return job["result"]["parametersSha256"]


def main():
    parser = parser_of(__doc__)
    parser.add_argument("what", choices=("whole", "crews", "killed"))
    parser.add_argument("--epochs", type=int, default=10)
    options = parser.parse_args()
    # Two logical devices suffice for one job, three for two Trainers.
    logical = {"whole": "0,0", "killed": "0,0,0"}.get(options.what)
    with Daemon(options, logical) as daemon:
        daemon.gnnctl("dataset", "import", options.data, "--id", "graph")
        wrong = {"whole": whole, "crews": crews, "killed": killed}[options.what](daemon, options)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(answered(main))
