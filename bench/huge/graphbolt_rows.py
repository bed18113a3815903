"""Random feature rows a second as GraphBolt reads them from a file: mapped, a row an index. (Its
DiskBasedFeature is in no wheel for processors; TorchBasedFeature over a mapping is its way there.)

  graphbolt_rows.py FILE.npy [ROWS]

The file's pages are forgotten first. One line of JSON: {"version", "rows_per_s"}.
"""

import json
import os
import sys
import time

import dgl
import dgl.graphbolt as gb
import numpy as np
import torch

path = sys.argv[1]
count = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
opened = os.open(path, os.O_RDONLY)
os.posix_fadvise(opened, 0, 0, os.POSIX_FADV_DONTNEED)
torch.set_num_threads(os.cpu_count())
feature = gb.TorchBasedFeature(torch.from_numpy(np.load(path, mmap_mode="c")))
rows = np.random.default_rng(1).integers(0, np.load(path, mmap_mode="r").shape[0], count)
begin = time.monotonic()
feature.read(torch.from_numpy(rows))
print(json.dumps({"version": dgl.__version__, "rows_per_s": count / (time.monotonic() - begin)}))
