import threading
from functools import partial
from pathlib import Path

import pytest

from gateway.observability.paths import HIDDEN, PathView, make_path_view_blocking
from gateway.turns.sanitizer import (
    OUTPUT_CHARS,
    SUMMARY_CHARS,
    OutputSanitizer,
    off_loop,
)
from policies.secrets import mask_secrets

KEY = "sk-ant-api03-abcdefghijklmnop0123456789"
PATHS = PathView(["/srv/app/ws"], ["/srv/app", "/var/candor data"])
SANITIZER = OutputSanitizer(PATHS, partial(mask_secrets, known=("known-secret-4711",)))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/srv/app/ws/a.txt", "a.txt"),
        ("rm '/srv/app/ws/a b.txt'", "rm 'a b.txt'"),
        ("/srv/app/ws", "."),
        ("/srv/app/ws/", "."),
        ("look into /srv/app/ws.", "look into the workspace."),
        ("'/srv/app/ws/'", "'.'"),
        ("file:///srv/app/ws/a.txt", "file://a.txt"),
        ("/srv/app/ws/.env and /srv/app/ws/记忆.md", ".env and 记忆.md"),
        ("/srv/app/ws2/a.txt", HIDDEN),
        ("/srv/app/ws-old, gone", f"{HIDDEN}, gone"),
        ("saved to: /srv/app/.candor/记录/x.txt\nText", f"saved to: {HIDDEN}\nText"),
        ("'/var/candor data/a'", f"'{HIDDEN}'"),
        ("in /srv/app.", f"in {HIDDEN}."),
        ("/srv/apple and /mnt/srv/app2", "/srv/apple and /mnt/srv/app2"),
        ("nothing here", "nothing here"),
        ("", ""),
    ],
)
def test_paths_are_told_from_the_workspace_and_the_servers_not_at_all(
    text: str, shown: str
) -> None:
    assert SANITIZER.text(text) == shown


def test_a_workspace_behind_a_link_is_known_by_both_its_names(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    paths = make_path_view_blocking(tmp_path / "link")
    assert paths.shown(f"{tmp_path}/link/a {tmp_path}/real/b") == "a b"


def test_secrets_are_masked_and_surrogates_replaced() -> None:
    assert "known-secret-4711" not in SANITIZER.text("it is known-secret-4711.")
    assert KEY not in SANITIZER.text(f"key {KEY}")
    assert SANITIZER.text("a\ud800b") == "a\ufffdb"


def test_a_secret_at_the_cut_is_masked_before_the_text_is_cut() -> None:
    for before in range(OUTPUT_CHARS // 2 - 30, OUTPUT_CHARS // 2 + 4, 3):
        shown = SANITIZER.clipped(f"{'x' * before} known-secret-4711 {'y ' * OUTPUT_CHARS}")
        assert "known-" not in shown, before
        assert "characters left out" in shown


@pytest.mark.parametrize(
    ("tool_input", "summary"),
    [
        ({"command": "mv a.txt b.txt", "description": "Move"}, "mv a.txt b.txt"),
        ({"file_path": "/srv/app/ws/notes/a.md"}, "notes/a.md"),
        ({"pattern": "*.md", "path": "/srv/app/ws"}, "*.md"),
        ({"command": "ls\n  -l"}, "ls -l"),
        ({"command": "  ", "file_path": "a"}, "a"),
        ({"todos": [{"content": "写"}]}, '{"todos":[{"content":"写"}]}'),
        ({}, ""),
        ({"command": "x" * 900}, "x" * (SUMMARY_CHARS - 1) + "…"),
    ],
)
def test_a_call_is_told_in_one_line(tool_input: dict[str, object], summary: str) -> None:
    assert SANITIZER.summary(tool_input) == summary


def test_a_tools_input_is_shown_without_secrets_server_paths_and_endless_texts() -> None:
    shown = SANITIZER.input(
        {
            "file_path": "/srv/app/ws/a.txt",
            "edits": [{"new": f"key={KEY}", "at": {"path": "/srv/app/ws/b"}}],
            "content": "z" * 50_000,
            "count": 3,
            "flag": True,
        }
    )
    assert shown["file_path"] == "a.txt"
    assert KEY not in str(shown)
    assert shown["edits"][0]["at"] == {"path": "b"}
    assert len(shown["content"]) < OUTPUT_CHARS + 100
    assert (shown["count"], shown["flag"]) == (3, True)


@pytest.mark.anyio
async def test_a_long_text_is_masked_in_a_worker_thread_and_a_short_one_at_once() -> None:
    loop_thread = threading.get_ident()

    def where(_: object) -> int:
        return threading.get_ident()

    assert await off_loop(where, "短 short") == loop_thread
    assert await off_loop(where, "x" * 2_000) != loop_thread
    assert await off_loop(where, {"edits": [{"new": "x" * 500, "x" * 600: 1}]}) != loop_thread
    assert await off_loop(where, {"items": [0] * 2_000}) != loop_thread
