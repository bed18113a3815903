"""`python -m gnnd_daemon` is the command `gnnd`."""

from gnnd_daemon import gnnd

gnnd()
