"""Which of the kernel's walls this machine offers, asked of other programs than ours."""

import ctypes
import shutil
import subprocess
import sys

import pytest

_CREATE_RULESET, _VERSION = 444, 1


def _has_landlock() -> bool:
    if not sys.platform.startswith("linux"):
        return False
    return int(ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION)) > 0


def _has_own_mounts() -> bool:
    program = shutil.which("unshare")
    if program is None:
        return False
    done = subprocess.run(
        [program, "--map-root-user", "--mount", "true"], capture_output=True, check=False
    )
    return done.returncode == 0


HAS_OWN_MOUNTS = _has_own_mounts()

needs_landlock = pytest.mark.skipif(
    not _has_landlock(), reason="this system's kernel offers no Landlock"
)
needs_own_mounts = pytest.mark.skipif(
    not HAS_OWN_MOUNTS, reason="this system allows no mounts of one's own"
)
needs_bubblewrap = pytest.mark.skipif(
    not (shutil.which("bwrap") and shutil.which("socat")), reason="no bubblewrap or no socat"
)
needs_boxes = pytest.mark.skipif(
    not (shutil.which("bwrap") and HAS_OWN_MOUNTS),
    reason="no bubblewrap, or no mounts of one's own",
)
