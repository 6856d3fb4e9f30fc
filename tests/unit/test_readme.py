"""The README is short, and the reference pages beside it are whole."""

import re
from pathlib import Path

from starlette.routing import Route

from gateway.doors.ag_ui import routes as ag_ui
from gateway.doors.anthropic import routes as anthropic
from gateway.doors.mcp import routes as mcp
from gateway.doors.openai import conversations as openai_conversations
from gateway.doors.openai import files as openai_files
from gateway.doors.openai import responses as openai_responses
from gateway.doors.openai import routes as openai
from gateway.http.routes import (
    approvals,
    audit,
    cases,
    chat,
    conversations,
    health,
    logs,
    mcp_servers,
    memory,
    page,
    schedules,
    sign_in,
    skills,
    webhooks,
    work_trees,
    workspace,
)
from gateway.settings import settings_rows, settings_table

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
HTTP = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
WORK = (
    *(chat, conversations, schedules, approvals, cases, memory, workspace, work_trees, skills),
    *(mcp_servers, webhooks),
)
OPENAI = (openai, openai_responses, openai_conversations, openai_files)
SECTIONS = (*WORK, sign_in, audit, logs, health, page, ag_ui, anthropic, *OPENAI, mcp)


def test_the_table_of_settings_is_the_generated_one() -> None:
    shown = re.search(r"<!-- settings:[^>]*-->\n(.*?)<!-- /settings -->", SETTINGS, re.DOTALL)

    assert shown is not None
    assert shown[1] == settings_table()


def test_every_setting_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"CANDOR_[A-Z_]+", README))

    assert named
    assert named <= {name for name, *_ in settings_rows()}


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 180


def test_every_route_is_described_and_no_other() -> None:
    routes = {
        f"{method} {route.path.replace(':path', '')}"
        for section in SECTIONS
        for route in section.router.routes
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    table = HTTP.partition("## Routes")[2].partition("## A turn")[0]

    assert set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) [^`]+)`", table)) == routes
