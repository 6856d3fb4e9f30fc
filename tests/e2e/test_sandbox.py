"""The second wall alone: with a gate that lets everything through, the kernel keeps the agent inside.

Real agent, real shell, the writes and reads outside that the policy's corpus holds, and then more.
"""

import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from gateway.engine.client import SdkClient
from gateway.engine.events import ToolReturned
from gateway.engine.sandbox.protection import Protection
from policies.calls import ToolCall
from tests.support.engine_talk import YES, Gate, ask, bash, script, step
from tests.support.engine_world import RealWorld, walled_world, write
from tests.support.walls import HAS_OWN_MOUNTS, needs_landlock
from tests.unit.policies.corpus import CORPUS, read_told

pytestmark = [pytest.mark.e2e, needs_landlock]

TOOLS = ("Read", "Write", "Edit", "NotebookEdit", "Glob", "Grep", "Bash", "Skill")
SECRET = "S3CR3T-OF-OTHERS"

_ELSEWHERE = re.compile(r"(?:^|[\s'\"=>(:])/|~|\$")
_OUT_OF_IT = re.compile(r"\.\.|-evil|dlink|dangle|merged")
"""Cases stay below the test's own directory, so that a wall that fails costs nothing but the test."""


def inside(root: Path, value: Any) -> Any:
    return json.loads(json.dumps(value).replace("{WS}", str(root / "ws")))


def corpus_cases() -> list[dict[str, Any]]:
    """Return the corpus's denied calls that read or write beside the workspace."""
    found = []
    for case in read_told("policy-deny.jsonl"):
        words = " ".join(map(str, [*case["input"].values(), *case.get("setup", [])]))
        words = words.replace("{WS}", "WS")
        if (
            case["tool"] in TOOLS
            and case["platform"] != "windows"
            and "hook_cwd" not in case
            and _OUT_OF_IT.search(words)
            and not _ELSEWHERE.search(words)
        ):
            found.append(case)
    return found


class Ground:
    """A workspace with neighbours, made anew for each case, and a look at what has changed outside."""

    def __init__(self, root: Path, master: Path) -> None:
        self.root = root
        self._master = master
        workspace = self._master / "ws"
        workspace.mkdir(parents=True)
        setup = (CORPUS / "workspace.sh").read_text("utf-8").replace("{WS}", str(workspace))
        subprocess.run(["bash", "-c", setup], check=True)
        for name in ("outside.txt", "outdir/keep.txt", "ws-evil/secret.txt"):
            path = self._master / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(SECRET, "utf-8")

    def lay(self, case: Mapping[str, Any]) -> None:
        """Make everything as it was, and what the case needs besides."""
        for path in [*self._neighbours(), *(self.root / "ws").iterdir()]:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shutil.copytree(self._master, self.root, symlinks=True, dirs_exist_ok=True)
        for line in case.get("setup", []):
            subprocess.run(["bash", "-c", line.replace("{WS}", str(self.root / "ws"))], check=True)

    def outside(self) -> dict[str, Any]:
        """Note what lies beside the workspace: content, mode and date of each."""
        found: dict[str, Any] = {}
        for top in self._neighbours():
            for path in [top, *top.rglob("*")]:
                state = path.lstat()
                content = path.read_bytes() if path.is_file() else b""
                found[str(path)] = (content, state.st_mode, state.st_mtime_ns, state.st_nlink)
        return found

    def _neighbours(self) -> list[Path]:
        return [entry for entry in self.root.iterdir() if entry.name not in {"data", "ws"}]


class Cases:
    """Lays the ground before each call and sees after it what has come of it outside."""

    def __init__(self, ground: Ground, cases: list[dict[str, Any]]) -> None:
        self._ground = ground
        self._waiting = iter(cases)
        self._case: dict[str, Any] | None = None
        self._before: dict[str, Any] = {}
        self.changed: list[str] = []

    def next(self, _call: ToolCall) -> object:
        self.look()
        self._case = next(self._waiting)
        self._ground.lay(self._case)
        self._before = self._ground.outside()
        return YES

    def look(self) -> None:
        if self._case is not None and self._ground.outside() != self._before:
            self.changed.append(self._case["id"])
        self._case = None


@dataclass
class Walled:
    """A real agent behind the wall, and the places around it."""

    world: RealWorld
    client: SdkClient
    wall: Protection
    root: Path

    async def play(self, *steps: dict[str, Any], gate: Gate | None = None) -> list[ToolReturned]:
        told = await ask(self.client, script(*steps, {"text": "Done."}), gate)
        assert told.text == "Done."
        results = told.all(ToolReturned)
        assert len(results) == len(steps)
        return results


@asynccontextmanager
async def walled(root: Path, **more: Any) -> AsyncIterator[Walled]:
    """Run an agent behind the strongest wall that there is; open it in the test's body."""
    async with walled_world(root, tools=TOOLS, **more) as (world, wall):
        yield Walled(world, await world.connect(), wall, root)


async def test_what_the_corpus_does_outside_fails_without_the_gate(tmp_path: Path) -> None:
    cases = corpus_cases()
    assert len(cases) > 60
    ground = await anyio.to_thread.run_sync(Ground, tmp_path / "P", tmp_path / "master")
    async with walled(tmp_path / "P") as there:
        assert there.wall.kind == "landlock"
        played = Cases(ground, cases)
        steps = [
            {"tool": case["tool"], "input": inside(tmp_path / "P", case["input"])} for case in cases
        ]
        results = await there.play(*steps, gate=Gate(judge=played.next))
        played.look()
    assert played.changed == []
    read = [one["id"] for one, told in zip(cases, results, strict=True) if SECRET in told.text]
    assert read == []


def test_the_same_commands_do_reach_outside_where_no_wall_is(tmp_path: Path) -> None:
    """So that the test above cannot pass because they do nothing anyway."""
    root = tmp_path / "P"
    ground = Ground(root, tmp_path / "master")
    (root / "ws").mkdir(parents=True)
    classes = {"path_traversal", "redirect", "symlink_write"}
    cases = [item for item in corpus_cases() if item["class"] in classes]
    played = Cases(ground, cases)
    read = 0
    for case in cases:
        played.next(ToolCall(name="", input={}, cwd="", tool_use_id=""))
        done = subprocess.run(
            ["bash", "-c", case["input"]["command"]],
            cwd=root / "ws",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        read += SECRET.encode() in done.stdout
    played.look()
    assert len(played.changed) > 12
    assert read > 4


async def test_ordinary_work_goes_on_behind_the_wall(tmp_path: Path) -> None:
    ws = tmp_path / "ws"
    skill = "---\nname: heron\ndescription: Knows all about herons.\n---\nLook at the water."
    write(ws / ".claude" / "skills" / "heron" / "SKILL.md", skill)
    write(ws / "a.txt", "alpha\n")
    cell = {"cell_type": "code", "id": "c1", "source": "x = 1", "metadata": {}, "outputs": []}
    book = {"cells": [cell | {"execution_count": None}], "metadata": {}, "nbformat": 4}
    write(ws / "n.ipynb", json.dumps(book | {"nbformat_minor": 5}))
    async with walled(tmp_path) as there:
        results = await there.play(
            step("Write", file_path=f"{ws}/new/项目.txt", content="neu"),
            step("Read", file_path=f"{ws}/a.txt"),
            step("Edit", file_path=f"{ws}/a.txt", old_string="alpha", new_string="gamma"),
            step("Read", file_path=f"{ws}/n.ipynb"),
            step("NotebookEdit", notebook_path=f"{ws}/n.ipynb", cell_id="c1", new_source="x = 2"),
            bash("mkdir -p d/e && ls && cat a.txt"),
            bash("cp -r d copy && mv copy/e copy/f && rm -r d && mv a.txt copy/f/b.txt"),
            bash("ln -s f copy/link && cp -r copy again && mv again copy/"),
            step("Glob", pattern="**/*.txt"),
            step("Grep", pattern="gamma"),
            step("Skill", skill="heron"),
            bash("head -c 4 /dev/urandom | wc -c > n; cat /etc/hosts > h; uname > /dev/null"),
        )
    assert [result.text for result in results if result.is_error] == []
    assert "gamma" in results[5].text
    assert "b.txt" in results[8].text
    assert "copy/f/b.txt" in results[9].text
    assert (ws / "copy/again/link/b.txt").read_text("utf-8") == "gamma\n"
    assert (ws / "new/项目.txt").read_text("utf-8") == "neu"
    assert "x = 2" in (ws / "n.ipynb").read_text("utf-8")
    assert (ws / "n").read_text("ascii").strip() == "4"


async def test_what_lies_outside_is_not_read_changed_signalled_or_called(tmp_path: Path) -> None:
    """Also where no case of the corpus looks: the server's own, its environment, dates and modes."""
    ws, data = tmp_path / "ws", tmp_path / "data"
    hidden = {
        "home": tmp_path / "other" / ".ssh" / "id_ed25519",
        "database": data / "candor.sqlite3",
        "journal": tmp_path / "logs" / "2026-01-01" / "one.jsonl",
        "settings": tmp_path / "server" / ".env",
    }
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with walled(tmp_path) as there:
            for path in hidden.values():
                write(path, SECRET)
            before = {name: path.stat() for name, path in hidden.items()}
            attacks = [
                *(step("Read", file_path=str(path)) for path in hidden.values()),
                *(step("Write", file_path=f"{path}2", content="x") for path in hidden.values()),
                *(bash(f"cat {path}") for path in hidden.values()),
                *(bash(f"cp {path} copy") for path in hidden.values()),
                *(bash(f"ln {path} hard") for path in hidden.values()),
                *(bash(f"mv {path} .") for path in hidden.values()),
                *(bash(f"rm -f {path}; ls {path.parent}") for path in hidden.values()),
                *(bash(f"truncate -s 0 {path}") for path in hidden.values()),
                bash(f"cat /proc/{os.getpid()}/environ"),
                bash(f"cat /proc/{os.getpid()}/maps"),
                bash(f"readlink /proc/{os.getpid()}/fd/0"),
                bash(f"kill -TERM {os.getpid()}"),
                bash(f"exec 3<>/dev/tcp/127.0.0.1/{port}"),
                bash("cat /etc/shadow"),
                bash("cat /etc/ssl/private/*"),
                bash("ls /root /home"),
                bash("echo x > /etc/candor-was-here"),
                bash("echo x > /tmp/candor-was-here"),
                bash("echo x > ~/.bashrc"),
                bash("cp /bin/true here && ./here"),
                bash("mount -o remount,rw /"),
                bash("unshare -m true"),
            ]
            if HAS_OWN_MOUNTS:  # else modes and dates are not kept, and the wall says so
                for path in hidden.values():
                    attacks.append(bash(f"touch {path}"))
                    attacks.append(bash(f"chown 65534 {path}"))
                    attacks.append(bash(f"chmod 777 {path}; chmod 777 {path.parent}"))
            assert ("dates" in there.wall.sentence) != HAS_OWN_MOUNTS
            results = await there.play(*attacks)
    went = zip(attacks, results, strict=True)
    assert [attack for attack, told in went if not told.is_error] == []
    assert not [result for result in results if SECRET in result.text]
    after = {name: path.stat() for name, path in hidden.items()}
    for name, was in before.items():
        now = after[name]
        assert (was.st_mode, was.st_uid, was.st_mtime_ns, was.st_nlink) == (
            now.st_mode,
            now.st_uid,
            now.st_mtime_ns,
            now.st_nlink,
        )
        assert hidden[name].read_text("utf-8") == SECRET
        assert not Path(f"{hidden[name]}2").exists()
    assert sorted(entry.name for entry in ws.iterdir()) == ["here"]
