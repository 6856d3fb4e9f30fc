"""Writes programs that try to get out of the box: sh and Python, chosen and varied by a seed.

Each is one or more attempts of the tables. They name places of the scene alone, so that a box that fails costs
the scene and nothing else; what would hurt the machine (such as a signal to everybody) is tried only where the
process namespace is known to stand.
"""

from dataclasses import dataclass
from random import Random
from textwrap import indent
from typing import Literal

from tests.differential.hostile_places import Scene
from tests.differential.hostile_python import PYTHON
from tests.differential.hostile_sh import SH

Language = Literal["sh", "python"]


@dataclass(frozen=True, slots=True)
class Program:
    """One program and what it tries."""

    language: Language
    text: str
    kinds: tuple[str, ...]


def write_program(random: Random, scene: Scene) -> Program:
    """Return a program of one to three attempts, which go on when one fails."""
    language: Language = random.choice(("sh", "python"))
    table = SH if language == "sh" else PYTHON
    names = random.sample(sorted(table), random.randint(1, 3))
    parts = [table[name](random, scene) for name in names]
    if language == "sh":
        return Program(language, "\n".join(f"( {part}\n)" for part in parts), tuple(names))
    wrapped = [
        f"try:\n{indent(part, '    ')}\nexcept BaseException as e: print(type(e))" for part in parts
    ]
    head = (
        "import ctypes, os, socket, subprocess, sys, struct, time, threading, shutil, signal, fcntl"
    )
    return Program(language, "\n".join([head, *wrapped]), tuple(names))
