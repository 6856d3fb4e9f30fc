"""A second reading of a command line, with tree-sitter's grammar of bash.

Our own tokenizer and this one must find the same words. They share no code, so a corner of the
shell that one of them misreads shows as a disagreement, and the command is denied. Node kinds are
allowed, not denied: any other kind, also of a later grammar, is refused.
"""

import re

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_BASH = Language(tree_sitter_bash.language())
_WORD_KINDS = frozenset({"word", "number", "raw_string", "string", "concatenation"})
_STRING_PARTS = frozenset({'"', "string_content"})
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def read_words(command: str) -> tuple[str, ...] | None:
    """Return the unquoted words of one plain command; `None` for anything else.

    The parse is linear for plain commands; the caller bounds the length.
    """
    program = Parser(_BASH).parse(command.encode()).root_node
    if program.type != "program" or program.has_error or program.child_count != 1:
        return None
    plain = program.children[0]
    if plain.type != "command" or not plain.children:
        return None
    name, *rest = plain.children
    if name.type != "command_name" or name.child_count != 1:
        return None
    words: list[str] = []
    for node in (name.children[0], *rest):
        word = _read_word(node)
        if word is None:
            return None
        words.append(word)
    return tuple(words)


def _read_word(node: Node) -> str | None:
    if node.type not in _WORD_KINDS or node.is_missing or node.text is None:
        return None
    text = node.text.decode()
    match node.type:
        case "word" | "number":
            return _ESCAPED.sub(r"\1", text)
        case "raw_string":
            return text[1:-1]
        case "string":
            plain = all(child.type in _STRING_PARTS for child in node.children)
            return text[1:-1] if plain else None
        case _:
            return _join_parts(node)


def _join_parts(node: Node) -> str | None:
    """Join the parts of one word; they must lie side by side, with nothing left out in between."""
    parts: list[str] = []
    at = node.start_byte
    for child in node.children:
        part = None if child.type == "concatenation" else _read_word(child)
        if part is None or child.start_byte != at:
            return None
        parts.append(part)
        at = child.end_byte
    return "".join(parts) if at == node.end_byte else None
