"""Runs scripts one after the other in this process, which imports torch once.

usage: run_all.py JSON      [[script, argument...]...]
"""

import json
import runpy
import sys

for command in json.loads(sys.argv[1]):
    sys.argv = command
    runpy.run_path(command[0], run_name="__main__")
