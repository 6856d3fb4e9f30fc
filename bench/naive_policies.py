"""Three policies that somebody might write in an afternoon, to measure against the same cases."""

import os
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

COMMANDS = frozenset({"rm", "mv", "cp", "mkdir", "ls", "cat"})
_METACHARACTERS = re.compile(r"[;&|<>$`(){}\n\\]|\.\.")
_WORD_NODES = frozenset(
    {
        *("program", "command", "command_name", "word", "string", "string_content", "raw_string"),
        *("number", "concatenation", '"', "list", "pipeline"),
    }
)
_PARSER = Parser(Language(tree_sitter_bash.language()))

NaivePolicy = Callable[[str, Path], bool]


def first_word(command: str, _root: Path) -> bool:
    """Allow what begins with a listed command."""
    return bool(command.strip()) and command.split(maxsplit=1)[0] in COMMANDS


def metacharacters(command: str, root: Path) -> bool:
    """Refuse shell characters, split with `shlex`, compare paths by their spelling."""
    if _METACHARACTERS.search(command):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return bool(words) and words[0] in COMMANDS and all(_inside(word, root) for word in words[1:])


def tree_sitter_words(command: str, root: Path) -> bool:
    """Allow a tree of plain words alone, compare paths by their spelling."""
    tree = _PARSER.parse(command.encode("utf-8", "replace"))
    nodes = list(_all_nodes(tree.root_node))
    if tree.root_node.has_error or any(node.type not in _WORD_NODES for node in nodes):
        return False
    commands = [node for node in nodes if node.type == "command"]
    if len(commands) != 1:
        return False
    words = [_text(node) for node in commands[0].children]
    return bool(words) and words[0] in COMMANDS and all(_inside(word, root) for word in words[1:])


def _all_nodes(node: Node) -> list[Node]:
    found = [node]
    for child in node.children:
        found += _all_nodes(child)
    return found


def _text(node: Node) -> str:
    text = (node.text or b"").decode("utf-8", "replace")
    return text[1:-1] if node.type in {"string", "raw_string"} else text


def _inside(word: str, root: Path) -> bool:
    if word.startswith("-"):
        return True
    path = os.path.normpath(word if word.startswith("/") else f"{root}/{word}")
    return path == str(root) or path.startswith(f"{root}/")


NAIVE: Mapping[str, NaivePolicy] = {
    "first word in a list": first_word,
    "metacharacters, shlex, spelling": metacharacters,
    "tree-sitter words, spelling": tree_sitter_words,
}
