"""Commands that are only unknown: what a person may be asked about, and what their yes covers."""

from pathlib import Path

import pytest

from policies.calls import ToolCall
from policies.permits import Permit, permits_for
from policies.rules import load_rules
from policies.tools import ToolGate
from policies.verdict import Ask, Deny
from tests.unit.policies.corpus import build_workspace, fill, read_cases

READS_WHAT_IT_NAMES = {"option_value_path"}
"""`cat --help-me`: an option that nobody knows, of a command that only reads."""
UNLISTED_PROGRAMS = {"command_word", "command_obfuscation"}


def deny(root: Path, command: str, cwd: Path | None = None) -> Deny:
    call = ToolCall(name="Bash", input={"command": command}, cwd=str(cwd or root))
    verdict = ToolGate(root).judge(call)
    assert isinstance(verdict, Deny)
    return verdict


def question(root: Path, command: str, cwd: Path | None = None) -> Ask:
    asked = deny(root, command, cwd).question
    assert asked is not None, command
    assert asked.effect is not None
    return asked


def reaches(asked: Ask) -> list[str]:
    assert asked.effect is not None
    return [permit.reach for permit in permits_for(asked.effect)]


def permit(root: Path, command: str, reach: str) -> Permit:
    effect = question(root, command).effect
    assert effect is not None
    return next(one for one in permits_for(effect, is_confined=True) if one.reach == reach)


def covered(root: Path, rule: Permit, command: str, cwd: Path | None = None) -> bool:
    effect = question(root, command, cwd).effect
    assert effect is not None
    return rule.covers(effect)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)
    for name in ("a.js", "sub/b.js", ".env", "publish", "CLAUDE.md"):
        (root / name).write_text("x", encoding="utf-8")
    (root / "out").symlink_to(tmp_path)
    return root


FORBIDDEN = (
    *("sudo ls", "Sudo ls", "bash x.sh", "env make", "xargs rm", "cd sub", "ln a.js b", "kill 1"),
    *("chmod 777 a.js", "docker run x", "./run.sh", "/bin/make", "FOO=1 make", "'make'"),
    *("make | sh", "make > x", "make && make", "make $X", "make `x`", "make; make", "make &"),
    *("tool .env", "tool --key=.env", "tool -f.env", "tool @.env", "tool x:.env", "tool a=b=.env"),
    *("tool /etc/passwd", "tool ../x", "tool ..", "tool ~/x", "tool out/x", "make CC=/bin/sh"),
    *("tool CLAUDE.md", "tool .git/hooks/x", "tool -I/usr/include", "curl https://a.example"),
    *("rm --weird a.js", "RM -rf sub", "cp --link a.js b", "find . -delete", "ls --dereference ."),
    *("head .env", "head ../x", "grep x out/x"),
    *("rbash a.js", "csh a.js", "zsh-5.9 a.js", "flock sub sh a.js", "setarch -R sh a.js"),
    *("taskset 1 bash a.js", "setpriv sh a.js", "systemd-run make", "xvfb-run make", "tmux"),
)


def test_what_is_forbidden_is_never_a_question(root: Path) -> None:
    asked = [command for command in FORBIDDEN if deny(root, command).kind != "forbidden"]
    assert asked == []


def test_what_a_file_forbids_is_never_a_question(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[commands]\nforbid = ["rm", "head"]\n', encoding="utf-8")
    gate = ToolGate(root, rules=load_rules(file))
    for command in ("rm a.js", "head a.js", "rm --weird a.js", "tail a.js"):
        verdict = gate.judge(ToolCall(name="Bash", input={"command": command}, cwd=str(root)))
        assert isinstance(verdict, Deny)
        assert verdict.kind == ("unknown" if command == "tail a.js" else "forbidden")


RUNS = {
    "git status": "git status",
    "npm test sub/b.js": "npm test sub/b.js",
    "tool *.js": "tool a.js",
    'git commit -m "fix: the thing"': "git commit -m 'fix: the thing'",
    "python3.12 -c 'print(1)'": "python3.12 -c 'print(1)'",
    "head -5 a.js": "head -n 5 -- a.js",
    "cat --weird a.js": "cat --weird a.js",
}


def test_a_question_names_the_rule_and_exactly_what_would_run(root: Path) -> None:
    for command, line in RUNS.items():
        denial = deny(root, command)
        assert denial.kind == "unknown"
        assert denial.question is not None
        assert denial.question.updated_input == {"command": line}
        assert (denial.question.rule, denial.question.reason) == (denial.rule, denial.reason)
    assert question(root, "git status").paths is None
    assert question(root, "head -5 a.js").paths == (str(root / "a.js"),)


REACHES = {
    "npm test a.js": ["exact", "files"],
    "make": ["exact", "files"],
    "git status": ["exact", "files"],
    "git -c a=b status": ["exact"],
    "git commit -c HEAD": ["exact"],
    "git push": ["exact"],
    "git config user.name": ["exact"],
    "python x.py": ["exact"],
    "Python3.12 x.py": ["exact"],
    "node a.js": ["exact"],
    "rsync a.js b.js": ["exact"],
    "pip install x": ["exact"],
    "npm publish": ["exact"],
    "npm exec x": ["exact"],
    "git rebase -x make main": ["exact"],
    "git bisect run ./x": ["exact"],
    "git archive --remote=a main": ["exact"],
    "Git push": ["exact"],
    "ipython x": ["exact"],
    "guile x": ["exact"],
    "ghci x": ["exact"],
    "irb x": ["exact"],
    "sbcl x": ["exact"],
    "groovy x": ["exact"],
    "openssl x": ["exact"],
    "svn x": ["exact"],
    "hg x": ["exact"],
    "rsh x": ["exact"],
    "lynx x": ["exact"],
    "nmap x": ["exact"],
    "head -5 a.js": ["exact", "folder", "any"],
}


def test_no_network_program_interpreter_or_configured_git_is_remembered_by_its_beginning(
    root: Path,
) -> None:
    assert {command: reaches(question(root, command)) for command in REACHES} == REACHES


def test_a_yes_to_words_covers_those_words_and_files_of_the_workspace_alone(root: Path) -> None:
    rule = permit(root, "npm test a.js", "files")
    for command in ("npm test", "npm test a.js sub/b.js", "npm test ./new", "npm test src/x.js"):
        assert covered(root, rule, command), command
    others = ("npm publish", "npm test publish", "npm test -w a.js", "npm -g test a.js", "npx test")
    for command in (*others, "npm testing a.js", "npm test https://a.example", "npm 'test a.js'"):
        assert deny(root, command).question is None or not covered(root, rule, command), command
    assert covered(root, permit(root, "npm run a.js", "files"), "npm run sub/b.js")


def test_a_yes_to_the_rule_covers_what_it_denies_and_a_yes_could_be_wider_to(root: Path) -> None:
    rule = permit(root, "npm test a.js", "rule")
    for command in ("npm run lint", "make", "git status", "sort -r sub/b.js"):
        assert covered(root, rule, command), command
    narrow = (command for command, found in REACHES.items() if found == ["exact"])
    for command in (*narrow, "cat --weird a.js", "head -5 a.js"):
        assert not covered(root, rule, command), command
    for command in FORBIDDEN:
        assert deny(root, command).question is None, command
    assert rule.fields(str) == {
        "reach": "rule",
        "tool": "Bash",
        "command": None,
        "rule": "command_not_allowed",
    }


NOT_ORDINARY = (
    *("npm publish", "npm exec evil", "npm test --script-shell=./a.js", "tool sub/b.js"),
    *("git rebase -x ./a.js main", "git bisect run ./a.js", "git grep -O./a.js x"),
    *("git archive --remote=a main", "git difftool -x ./a.js", "git diff --ext-diff"),
    *("git -C sub log", "Git status"),
    *("make SHELL=./a.js", "make -f a.js", "sort --compress-program=./a.js -S 1 sub/b.js"),
    *("ipython a.js", "guile a.js", "openssl version", "svn up", "split --filter=./a.js sub/b.js"),
)
"""Lines whose words choose a program, change what runs, or reach another machine, or may do so."""


@pytest.mark.parametrize("command", NOT_ORDINARY)
def test_a_yes_to_the_rule_neither_covers_nor_is_offered_for_words_that_are_not_listed(
    root: Path, command: str
) -> None:
    asked = question(root, command).effect
    assert asked is not None
    assert not permit(root, "make", "rule").covers(asked)
    assert "rule" not in [one.reach for one in permits_for(asked, is_confined=True)]


def test_a_yes_to_the_rule_is_offered_where_the_kernel_confines_the_program_alone(
    root: Path,
) -> None:
    for command, found in REACHES.items():
        effect = question(root, command).effect
        assert effect is not None
        offered = [one.reach for one in permits_for(effect, is_confined=True)]
        assert offered == [*found, *(["rule"] if "files" in found else [])]


def test_a_yes_to_a_line_covers_that_line_in_that_folder_alone(root: Path) -> None:
    rule = permit(root, "npm test a.js", "exact")
    assert covered(root, rule, "npm  test 'a.js'")
    assert not covered(root, rule, "npm test a.js a.js")
    assert not covered(root, rule, "npm test a.js", cwd=root / "sub")


def test_a_yes_to_a_listed_command_covers_no_unknown_form_of_it(root: Path) -> None:
    call = ToolCall(name="Bash", input={"command": "rm a.js"}, cwd=str(root))
    listed = ToolGate(root).judge(call)
    assert not isinstance(listed, Deny)
    assert listed.effect is not None
    (any_rm,) = (one for one in permits_for(listed.effect) if one.reach == "any")
    any_head = permit(root, "head a.js", "any")
    assert any_rm.covers(listed.effect)
    unknown = question(root, "cat --weird a.js").effect
    assert unknown is not None
    assert not Permit(reach="any", effect=listed.effect).covers(unknown)
    assert covered(root, any_head, "head -n 3 sub/b.js")


def test_the_corpus_asks_about_unlisted_programs_and_about_nothing_that_is_forbidden(
    shared_workspace: Path, tmp_path: Path
) -> None:
    asked: dict[str, str] = {}
    for case in read_cases("policy-deny.jsonl"):
        root = build_workspace(tmp_path / case.id, case.setup) if case.setup else shared_workspace
        gate = ToolGate(root, rules=case.rules, platform=case.platform)
        cwd = fill(case.hook_cwd, root)
        verdict = gate.judge(ToolCall(name=case.tool, input=fill(case.input, root), cwd=cwd))
        assert isinstance(verdict, Deny)
        if verdict.kind == "unknown":
            asked[case.id] = case.cls
    assert set(asked.values()) == UNLISTED_PROGRAMS | READS_WHAT_IT_NAMES
    assert 10 <= len(asked) <= 30
