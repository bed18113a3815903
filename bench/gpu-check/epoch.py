#!/usr/bin/env python3
"""An epoch of a graph of the size of ogbn-products, through a daemon, on devices of one kind.

  epoch.py --node NODE --addons DIR --device cuda|sim --data FOLDER --folder DIR [--batch N]

FOLDER is one of bench/products/graph.py. GraphSAGE of 256 units, fanouts 15/10/5: a Sampler and a
Trainer on two logical devices of the first one. Of three epochs the fastest after the first counts,
evaluations left out. Prints an answer a line, as jobs.py; the peer is pyg_epoch.py.
"""

import sys

from daemon import Daemon, answered, parser_of, say

EPOCHS = 3


def spec_of(options):
    return {
        "dataset": "graph",
        "model": {"type": "GRAPHSAGE", "hidden_dim": 256, "dropout": 0.5},
        "sampling": {"fanouts": [15, 10, 5]},
        "training": {"epochs": EPOCHS, "batch_size": options.batch, "random_seed": 7},
        "evaluation": {"every_epochs": EPOCHS},
        "resources": {"device_kind": options.device.upper(), "devices": 2},
        "placement": {"policy": "FIXED", "samplers": 1, "standby": "OFF"},
    }


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--batch", type=int, default=1024)
    options = parser.parse_args()
    with Daemon(options, logical="0,0") as daemon:
        daemon.gnnctl("dataset", "import", options.data, "--id", "graph")
        job, stages = daemon.run("epoch", spec_of(options))
        seconds = [float(epoch["durationMs"]) / 1000 for epoch in job["epochs"]]
        say("epoch, gnnd", round(min(seconds[1:]), 3), "s")
        say("epoch, gnnd, the first", round(seconds[0], 3), "s")
        for stage, busy in sorted(stages.items()):
            if busy > 0:
                say(f"epochs, gnnd: stage {stage}", round(busy, 3), "s")
        say("accuracy, gnnd", round(float(job["result"]["testAccuracyLast"]), 4))
    return 0


if __name__ == "__main__":
    sys.exit(answered(main))
