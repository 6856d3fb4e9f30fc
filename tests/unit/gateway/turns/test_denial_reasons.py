"""Every rule that can deny a call has its reason in Chinese; a new rule without one fails here."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from gateway.turns.sentences import DENIALS, describe_denial
from policies.verdict import Deny

ROOT = Path(__file__).resolve().parents[4]
VERDICTS = {"Deny", "Ask", "Refused"}
NAME = re.compile(r"[a-z][a-z0-9_]*")


@cache
def nodes() -> list[ast.AST]:
    """Return all nodes of the source."""
    files = (path for top in ("policies", "gateway") for path in sorted((ROOT / top).rglob("*.py")))
    return [
        node
        for text in (path.read_text(encoding="utf-8") for path in files)
        for node in ast.walk(ast.parse(text))
    ]


def rule_argument(call: ast.Call) -> ast.expr:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "rule"]
    return [*named, *call.args][0]


def verdict_calls(among: Iterable[ast.AST]) -> Iterator[ast.Call]:
    for node in among:
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in VERDICTS:
                yield node
            case _:
                pass


def texts_in(node: ast.expr) -> Iterator[str]:
    """Yield the rules that an argument may be: a text, or one of two."""
    if isinstance(node, ast.IfExp):
        yield from texts_in(node.body)
        yield from texts_in(node.orelse)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def rules_in_tuples() -> Iterator[str]:
    """Yield the rules of tables: tuples of a rule, a sentence and a hint for `Deny(*rule)`."""
    for node in nodes():
        match node:
            case ast.Tuple(elts=[ast.Constant(str(rule)), ast.Constant(str(reason)), _]):
                if NAME.fullmatch(rule) and reason.endswith("."):
                    yield rule
            case _:
                pass


def rules_in_the_table() -> Iterator[str]:
    told = tomllib.loads((ROOT / "policies" / "denials.toml").read_text(encoding="utf-8"))
    for table in told.pop("signs").values():
        yield from (key.partition(".")[0] for rules in table.values() for key in rules)
    yield from (key.partition(".")[0] for key, texts in told.items() if isinstance(texts, list))


def rules_given_on() -> Iterator[str]:
    """Yield the rules that reach a verdict as a parameter of the function that makes it."""
    places = {
        function.name: [arg.arg for arg in function.args.args].index(name.id)
        for function in nodes()
        if isinstance(function, ast.FunctionDef)
        for call in verdict_calls(ast.walk(function))
        if isinstance(name := rule_argument(call), ast.Name)
    }
    for node in nodes():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            place = places.get(node.func.id)
            if place is not None:
                yield from texts_in(node.args[place])


@cache
def all_rules() -> set[str]:
    found = {*rules_given_on(), *rules_in_the_table(), *rules_in_tuples()}
    return found.union(*(texts_in(rule_argument(call)) for call in verdict_calls(nodes())))


def test_every_rule_is_found() -> None:
    """A rule that comes from anywhere else than where this test looks would be missed by it."""
    known = (ast.Constant, ast.IfExp, ast.Starred, ast.Name)
    other = {
        ast.unparse(argument)
        for call in verdict_calls(nodes())
        if not isinstance(argument := rule_argument(call), known)
    }
    assert other == {"verdict.rule", "key.partition('.')[0]"}, "of another verdict, or of the table"
    assert len(all_rules()) > 100


def test_every_rule_has_its_reason_in_chinese_and_no_other_has() -> None:
    assert sorted(DENIALS) == sorted(all_rules())
    for rule, reason in DENIALS.items():
        assert re.search("[\u4e00-\u9fff]", reason), rule
        assert not reason.endswith(("。", ".")), "it stands inside a sentence"


OUTSIDE = Deny("outside_workspace", "/etc is outside the workspace.", "Use paths inside.")
DENIED = Deny("approval_denied", "A person denied this. They said: Not now", quoted="Not now")
REASONS = [
    (OUTSIDE, "/etc is outside the workspace. Use paths inside.", "路径在工作区之外"),
    (DENIED, DENIED.reason, "询问过的人拒绝了这次调用，并说：Not now"),
    (Deny("not_known_here", "It is so."), "It is so.", "It is so."),
]


def test_a_reason_is_in_the_persons_language() -> None:
    for denial, english, chinese in REASONS:
        assert describe_denial(denial, "en") == english
        assert describe_denial(denial, "zh") == chinese
