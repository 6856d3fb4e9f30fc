"""`python app.py logs`."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.journal.cli import run_logs_command
from tests.unit.gateway.open_journal import line_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def line(seq: int, kind: str, **fields: Any) -> str:
    return line_text(f"10:00:{seq:02}", seq, kind, **fields)


def put(directory: Path, name: str, *lines: str) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(lines)


def run(
    directory: Path,
    *args: str,
    out: io.StringIO | None = None,
    wait: Callable[[float], None] | None = None,
) -> tuple[int, str, str]:
    out, err = out or io.StringIO(), io.StringIO()
    options: dict[str, Any] = {} if wait is None else {"wait": wait}
    code = run_logs_command(list(args), log_dir=directory, out=out, err=err, **options)
    return code, out.getvalue(), err.getvalue()


FIGURES = 'tools=[{"status":"ok"}]  changes={"files":0,"added":0,"removed":0,"complete":true}'
TURN = "2026-11-20/trn_a.jsonl"
BLOCK = '{"type":"ToolUseBlock","name":"Bash","input":{"command":"ls"},"id":"t"}'


def turn(directory: Path) -> None:
    put(
        directory,
        TURN,
        line(1, "request", message="list the files\nplease"),
        line(2, "message", message={"type": "SystemMessage", "subtype": "init", "data": {}}),
        line(3, "message", message={"type": "StreamEvent", "event": {}}),
        line(4, "message", message={"type": "StreamEvent", "event": {}}),
        line(5, "message", message={"type": "AssistantMessage", "content": [json.loads(BLOCK)]}),
        line(6, "permission", tool="Bash", verdict="allow", rule="bash_ls", reason="Reads."),
        line(7, "tool", name="Bash", status="ok", summary="ls", error=None, duration_ms=12),
        line(8, "error", code="x", message="it broke"),
        "{torn\udcff\n",
        line(
            9,
            "response",
            outcome="answered",
            stop_reason="end_turn",
            reply="a.txt\nb.txt",
            tools=[{"status": "ok"}],
            changes={"files": 0, "added": 0, "removed": 0, "complete": True},
            notices=[{"code": "session_lost", "message": "It started afresh."}],
        ),
    )


def test_without_a_word_the_latest_turns_are_listed(tmp_path: Path) -> None:
    turn(tmp_path)
    code, out, err = run(tmp_path)
    assert (code, err) == (0, "")
    head, row = out.splitlines()
    assert head.split() == ["time", "(UTC)", "outcome", "conversation", "turn", "message"]
    assert row.split()[:5] == ["2026-11-20", "10:00:01", "answered", "cnv_c", "trn_a"]
    assert row.endswith("list the files please")


def test_no_logs_is_said_and_one_that_is_asked_for_with_code_one(tmp_path: Path) -> None:
    assert run(tmp_path / "missing") == (0, "No logs yet.\n", "")
    assert run(tmp_path, "show", "trn_a") == (1, "", "logs: there is no log of trn_a\n")
    turn(tmp_path)
    assert run(tmp_path, "list", "--conversation", "cnv_x")[1] == "No logs of that conversation.\n"


def test_the_list_is_bounded_and_filtered(tmp_path: Path) -> None:
    for n in range(30):
        asked = line(n, "request", conversation_id=f"cnv_{n % 2}")
        put(tmp_path, f"2026-11-20/trn_{n}.jsonl", asked)
    assert len(run(tmp_path)[1].splitlines()) == 1 + 20
    assert len(run(tmp_path, "--limit", "3")[1].splitlines()) == 1 + 3
    rows = run(tmp_path, "list", "--conversation", "cnv_1", "--limit", "200")[1].splitlines()
    assert len(rows) == 1 + 15
    assert all("cnv_1" in row for row in rows[1:])


@pytest.mark.parametrize("name", ["trn_a", TURN])
def test_a_turn_is_shown_readably(tmp_path: Path, name: str) -> None:
    turn(tmp_path)
    code, out, err = run(tmp_path, "show", name)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        TURN,
        "10:00:01.000  request",
        "                          list the files",
        "                          please",
        "10:00:02.000  message     type=SystemMessage  subtype=init  data={}",
        "              2 pieces of an answer",
        f"10:00:05.000  message     type=AssistantMessage  content=[{BLOCK}]",
        "10:00:06.000  permission  tool=Bash  verdict=allow  rule=bash_ls  reason=Reads.",
        "10:00:07.000  tool        name=Bash  status=ok  summary=ls  duration_ms=12",
        "10:00:08.000  error       code=x  message=it broke",
        "              damaged     line 9: {torn\\xff",
        f"10:00:09.000  response    outcome=answered  stop_reason=end_turn  {FIGURES}",
        "              did         1 call; no file was changed",
        "                          a.txt",
        "                          b.txt",
        "              notice      session_lost  It started afresh.",
    ]


def test_json_gives_the_lines_as_they_are(tmp_path: Path) -> None:
    turn(tmp_path)
    raw = (tmp_path / TURN).read_bytes().decode("utf-8", "backslashreplace")
    assert run(tmp_path, "show", "trn_a", "--json") == (0, raw, "")


def test_colours_are_for_terminals_alone(tmp_path: Path) -> None:
    turn(tmp_path)
    assert "\x1b[" not in run(tmp_path, "show", "trn_a")[1]
    assert "\x1b[" in run(tmp_path, "show", "trn_a", out=Terminal())[1]


def test_what_a_model_wrote_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202ereply"
    put(
        tmp_path,
        TURN,
        line(1, "request", message=evil),
        line(2, "message", message={"type": evil, "content": [{"text": evil}]}),
        line(3, evil, note=evil),
        line(4, "response", outcome=evil, reply=evil, notices=[{"code": evil}, evil]),
        evil + "\n",
    )
    out = run(tmp_path)[1] + run(tmp_path, "show", "trn_a")[1]
    assert all(char.isprintable() or char == "\n" for char in out)
    assert "reply" in out


def test_bad_arguments_get_one_clear_sentence(tmp_path: Path) -> None:
    for args in (
        ["nonsense"],
        ["--bogus"],
        ["show"],
        ["show", "a", "b"],
        ["show", "../../etc/passwd"],
        ["show", "trn_a\x1b[2J"],
        ["list", "--limit"],
        ["list", "--limit", "0"],
        ["list", "--limit", "-3"],
        ["list", "--limit", "201"],
        ["list", "--limit", "²"],
        ["list", "--limit", "many"],
        ["follow", "trn_a"],
    ):
        code, out, err = run(tmp_path, *args)
        assert (code, out) == (2, ""), args
        assert err.startswith("logs: ")
        assert err.count("\n") == 1
        assert "\x1b" not in err


# --- follow ---------------------------------------------------------------------------------------


def error(seq: int, code: str, **fields: Any) -> str:
    return line(seq, "error", code=code, **fields)


def follow(
    directory: Path, *args: str, steps: list[Callable[[], None] | tuple[str, str]]
) -> list[str]:
    """Do one step at each wait of the command, a call or a file's further text, then interrupt it."""
    waiting = iter(steps)

    def wait(_seconds: float) -> None:
        step = next(waiting, None)
        if step is None:
            raise KeyboardInterrupt
        if callable(step):
            step()
        else:
            put(directory, *step)

    code, out, err = run(directory, "follow", *args, wait=wait)
    assert (code, err) == (0, "")
    return out.splitlines()


def test_follow_shows_whole_new_lines_of_all_files_new_files_and_new_days(tmp_path: Path) -> None:
    turn(tmp_path)
    idle, late, new = (TURN, ""), (TURN, error(10, "late")), error(1, "new_file")
    halves = [("2026-11-20/trn_b.jsonl", half) for half in (new[:20], new[20:])]
    day = [("2026-11-21/trn_c.jsonl", error(n, f"day_{n}")) for n in (1, 2)]
    assert follow(tmp_path, steps=[idle, late, *halves, *day, idle]) == [
        TURN,
        "10:00:10.000  error       code=late",
        "2026-11-20/trn_b.jsonl",
        "10:00:01.000  error       code=new_file",
        "2026-11-21/trn_c.jsonl",
        "10:00:01.000  error       code=day_1",
        "10:00:02.000  error       code=day_2",
    ]


def test_follow_keeps_to_one_conversation(tmp_path: Path) -> None:
    steps = [
        (f"2026-11-20/trn_{n}.jsonl", error(1, f"of_{n}", conversation_id=f"cnv_{n}"))
        for n in range(2)
    ]
    shown = follow(tmp_path, "--conversation", "cnv_1", steps=[*steps])
    assert shown == ["2026-11-20/trn_1.jsonl", "10:00:01.000  error       code=of_1"]


def test_follow_outlives_files_that_go_or_begin_anew(tmp_path: Path) -> None:
    turn(tmp_path)
    path = tmp_path / TURN

    def begin_anew() -> None:
        path.write_text(error(1, "anew"), encoding="utf-8")

    assert follow(tmp_path, steps=[begin_anew, path.unlink, path.parent.rmdir]) == [
        TURN,
        "10:00:01.000  error       code=anew",
    ]
