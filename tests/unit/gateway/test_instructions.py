"""Which skills, sub-agents and commands agents are given, and what is said of the others."""

import pytest

from gateway import instructions
from gateway.instructions import (
    MAX_FRONT_MARKS,
    MAX_LOADED,
    Instruction,
    find_instructions,
    names_of,
)
from policies.configuration import Found, digest_of, find_concerns

APPROVED = b"---\ndescription: Greets\n  the person.\n---\nSay good morning."


def found_in(
    files: dict[str, bytes],
    *,
    approved: dict[str, bytes] | None = None,
    own: dict[str, bytes] | None = None,
) -> list[Instruction]:
    found = [Found(path=path, content=content) for path, content in files.items()]
    digests = {path: digest_of(content) for path, content in (approved or {}).items()}
    concerns = find_concerns(found, digests)
    owned = {path: digest_of(content) for path, content in (own or {}).items()}
    return list(find_instructions(found, concerns, digests, owned))


def problems(files: dict[str, bytes], **more: dict[str, bytes]) -> dict[str, str | None]:
    return {item.path: item.problem for item in found_in(files, **more)}


def test_a_file_is_given_exactly_as_it_was_approved_or_shipped() -> None:
    path = ".claude/skills/greet/SKILL.md"
    for kept in ({"approved": {path: APPROVED}}, {"own": {path: APPROVED}}):
        (item,) = found_in({path: APPROVED}, **kept)
        assert (item.is_trusted, item.is_loaded, item.problem) == (True, True, None)
        assert (item.kind, item.name) == ("skill", "greet")
        assert item.description == "Greets the person."
        assert problems({path: APPROVED + b" "}, **kept) == {path: "changed"}
    assert problems({path: APPROVED}) == {path: "unapproved"}
    other = path.replace("greet", "other")
    assert problems({other: APPROVED}, own={path: APPROVED}) == {other: "unapproved"}


def test_a_front_matter_that_takes_long_to_parse_is_not_parsed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def parse(front: str) -> object:
        parsed.append(front)
        return {}

    parsed: list[str] = []
    monkeypatch.setattr(instructions, "_parse", parse)
    path = ".claude/skills/greet/SKILL.md"
    for marks in ("[" * 15_000, "{a: " * 4_000, "[" + "a," * MAX_FRONT_MARKS):
        content = f"---\ndescription: {marks}\n---\n".encode()
        assert problems({path: content}, approved={path: content}) == {path: "syntax"}
    assert parsed == []
    content = f"---\ndescription: {'a, ' * MAX_FRONT_MARKS}\n---\n".encode()
    assert problems({path: content}, approved={path: content}) == {path: None}
    assert len(parsed) == 1


def test_what_is_wrong_with_a_file_is_said_and_it_is_not_given_although_approved() -> None:
    files = {
        ".claude/agents/helper.md": b"---\nname: helper\ndescription: d\ntools: Read, Grep\n---\nHelp.",
        ".claude/agents/nameless.md": b"---\ndescription: d\n---\n",
        ".claude/agents/own.md": b"---\nname: General-Purpose\n---\n",
        ".claude/commands/deploy.md": b"Deploy.",
        ".claude/commands/db/reset.md": b"Reset.",
        ".claude/commands/two words.md": b"No.",
        ".claude/skills/broken/SKILL.md": b"---\ndescription: [\n---\n",
        ".claude/skills/group/inner/SKILL.md": b"x",
        ".claude/skills/list/SKILL.md": b"---\n- a\n---\n",
        ".claude/skills/long/SKILL.md": b"---\ndescription: " + b"x" * 20_000 + b"\n---\n",
        "deep/.claude/skills/below/SKILL.md": b"x",
    }
    assert problems(files, approved=files) == {
        ".claude/agents/helper.md": None,
        ".claude/agents/nameless.md": "name",
        ".claude/agents/own.md": "name_taken",
        ".claude/commands/deploy.md": None,
        ".claude/commands/db/reset.md": None,
        ".claude/commands/two words.md": "name",
        ".claude/skills/broken/SKILL.md": "syntax",
        ".claude/skills/group/inner/SKILL.md": "elsewhere",
        ".claude/skills/list/SKILL.md": "syntax",
        ".claude/skills/long/SKILL.md": "syntax",
        "deep/.claude/skills/below/SKILL.md": "elsewhere",
    }
    given = found_in(files, approved=files)
    assert names_of(given, ("skill", "command")) == ("db:reset", "deploy")
    assert (given[0].tools, given[0].body) == (("Read", "Grep"), "Help.")


def test_what_acts_says_so_until_it_is_approved() -> None:
    files = {".claude/commands/now.md": b"---\nallowed-tools: Bash\n---\n!`id`"}
    (item,) = found_in(files)
    assert (item.problem, item.acts) == ("acts", "allowed-tools, !`command`")
    assert problems(files, approved=files) == {".claude/commands/now.md": None}


def test_a_file_that_is_not_given_takes_its_name_from_one_that_would_be() -> None:
    """It is by the name that agents are kept from it."""
    skill, command = ".claude/skills/greet/SKILL.md", ".claude/commands/Greet.md"
    files = {skill: APPROVED, command: b"Something else."}
    assert problems(files, own={skill: APPROVED}) == {skill: "name_taken", command: "unapproved"}
    assert problems(files, approved=files) == {skill: None, command: None}
    agents = {f".claude/agents/{at}.md": b"---\nname: helper\n---\n%d" % at for at in (1, 2)}
    first = dict(list(agents.items())[:1])
    assert list(problems(agents, approved=first).values()) == ["name_taken", "unapproved"]


def test_links_and_other_files_that_cannot_be_read_are_listed() -> None:
    files = [
        Found(path=".claude/skills/linked", trouble="link"),
        Found(path=".claude/skills/big/SKILL.md", trouble="too_large"),
        Found(path=".claude/commands", trouble="unreadable"),
        Found(path=".claude/settings.json", trouble="link"),
        Found(path=".claude/skills/linked/notes.md"),
    ]
    found = find_instructions(files, (), {}, {})
    assert [(item.kind, item.name, item.problem) for item in found] == [
        ("skill", "linked", "link"),
        ("skill", "big", "too_large"),
        ("command", "commands", "unreadable"),
    ]


def test_agents_are_given_so_many_and_no_more() -> None:
    files = {f".claude/commands/c{at}.md": b"x" for at in range(MAX_LOADED + 2)}
    told = list(problems(files, approved=files).values())
    assert told == [None] * MAX_LOADED + ["too_many"] * 2


def test_a_front_matter_can_do_nothing_but_fail() -> None:
    """Merge keys that would grow for ever, tags that would build objects, and depth."""
    bomb = "a: &a [x]\n" + "".join(
        f"{chr(98 + at)}: &{chr(98 + at)} [{', '.join([f'*{chr(97 + at)}'] * 9)}]\n"
        for at in range(9)
    )
    merged = "m: &m {k: v}\n" + "".join(f"n{at}: &m {{<<: [*m, *m]}}\n" for at in range(400))
    for front in (bomb, merged, "a: " + "[" * 8000, "a: !!python/object/apply:os.getpid []"):
        content = f"---\n{front}\n---\n".encode()
        assert len(found_in({".claude/skills/a/SKILL.md": content})) == 1
