"""A daemon for one process, which ends with that, however that ends; CORA is a .npz file."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import gnnd

OPTIONS = {"cpu_devices": 1, "share_cores": True, "cuda_devices": "none"}
SECONDS_MAX = 120


def lives(pid):
    """Whether there is such a process; one that ended and was not waited for is none."""
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def gone(pid, folder):
    """Waits until neither is there."""
    deadline = time.monotonic() + SECONDS_MAX
    while lives(pid) or folder.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


class Locals(unittest.TestCase):
    def test_end_with_their_block_and_leave_nothing(self):
        with gnnd.local(**OPTIONS) as client:
            pid = client.host.pid
            folder = client.log_path.parent
            self.assertTrue(lives(pid) and folder.exists())
            self.assertIn(str(folder), client.host.state_dir)
        self.assertFalse(lives(pid) or folder.exists())

    def test_keep_what_they_are_told_to(self):
        with tempfile.TemporaryDirectory() as state:
            with gnnd.local(state, **OPTIONS) as client:
                client.import_path(os.environ["CORA"], "cora")
            with gnnd.local(state, **OPTIONS) as client:
                self.assertEqual([each.id for each in client.datasets()], ["cora"])

    def ended_by(self, how):
        script = f"import gnnd, sys; client = gnnd.local(**{OPTIONS!r}); "
        script += "print(client.host.pid, client.log_path.parent, flush=True); " + how
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as child:
            pid, folder = child.stdout.readline().decode().split()
            yield child, int(pid)
        yield gone(int(pid), pathlib.Path(folder))

    def test_end_with_a_process_that_is_killed(self):
        ending = self.ended_by("import time; time.sleep(1000)")
        child, pid = next(ending)
        self.assertTrue(lives(pid))
        child.kill()
        self.assertTrue(next(ending))

    def test_end_with_a_process_that_forgets_them(self):
        ending = self.ended_by("")
        next(ending)
        self.assertTrue(next(ending))

    def test_outlive_an_interrupt_of_the_terminal(self):
        wait = "import signal, time; signal.signal(2, lambda *_: print('heard', flush=True)); "
        ending = self.ended_by(wait + "print('ready', flush=True); sys.stdin.readline()")
        child, pid = next(ending)
        self.assertEqual(child.stdout.readline(), b"ready\n")
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.stdout.readline(), b"heard\n")
        self.assertTrue(lives(pid))
        self.assertNotEqual(os.getpgid(pid), os.getpgid(child.pid))
        child.kill()
        self.assertTrue(next(ending))


if __name__ == "__main__":
    unittest.main()
