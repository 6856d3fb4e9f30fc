"""A held-out set for the masking of secrets: cases written from the world, before the code they measure.

The code is not tuned on these. They measure what it misses and what it masks by mistake; `bench policy`
prints both. `⟦…⟧` marks a secret, `‹kind length›` is filled in when the set is made, so no value is stored.
"""

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TEMPLATES: dict[str, list[str]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)
_WORDS = (
    *("dragon", "summer", "falcon", "coffee", "orange", "winter", "guitar", "monkey", "rocket"),
    *("purple", "silver", "wizard", "jungle", "planet", "kitten", "thunder", "harbor", "velvet"),
)
_ALPHABETS = {
    "hex": "0123456789abcdef",
    "HEX": "0123456789ABCDEF",
    "an": string.ascii_letters + string.digits,
    "AN": string.ascii_uppercase + string.digits,
    "AZ": string.ascii_uppercase,
    "low": string.ascii_lowercase + string.digits,
    "dig": string.digits,
    "b64": string.ascii_letters + string.digits + "+/",
    "b64url": string.ascii_letters + string.digits,
    "url": string.ascii_letters + string.digits + "-_",
    "sym": string.ascii_lowercase + string.digits + "!@#$%^&*(-_=+)",
    "B32": string.ascii_uppercase + "234567",
}
_FILL = re.compile(r"‹(?P<kind>\w+)(?: (?P<arg>\w+))?›")
_SECRET = re.compile(r"⟦([^⟧]*)⟧")


@dataclass(frozen=True, slots=True)
class Case:
    """A text and the secrets in it; none in an ordinary line."""

    group: str
    text: str
    secrets: tuple[str, ...]

    def is_missed(self, masked: str) -> bool:
        """Return whether half of a secret or more is still readable."""
        return any(
            half in masked
            for secret in self.secrets
            for half in (secret[: len(secret) // 2 + 1], secret[len(secret) // 2 :])
        )


def _password(rng: random.Random) -> str:
    word = rng.choice(_WORDS)
    return rng.choice(
        (
            f"{word.title()}{rng.randint(10, 9999)}{rng.choice('!#$*?')}",
            f"{word[:3].upper()}{rng.choice('@#!')}{word[3:]}{rng.randint(100, 999)}",
            f"{rng.choice('ABCXYZ')}{rng.choice('abcxyz')}{rng.randint(10, 99)}!{rng.choice(_WORDS)}",
            "".join(rng.choice(string.ascii_letters + string.digits + "!#*_+") for _ in range(14)),
        )
    )


def _fill(kind: str, arg: str, rng: random.Random) -> str:
    match kind:
        case "pw":
            return _password(rng)
        case "pwurl":
            return re.sub(r"[#?+]", "%21", _password(rng))
        case "weak":
            return f"{rng.choice(_WORDS)}{rng.randint(10, 99999)}"
        case "word":
            return rng.choice(_WORDS)
        case "b64of":
            return base64.b64encode(f"admin:{_fill(arg, '', rng)}".encode()).decode().rstrip("=")
        case "b64pad":
            return base64.b64encode(rng.randbytes(int(arg))).decode()
        case "uuid":
            return str(uuid.UUID(int=rng.getrandbits(128), version=4))
        case _:
            return "".join(rng.choice(_ALPHABETS[kind]) for _ in range(int(arg)))


def _make(group: str, template: str, rng: random.Random) -> Case:
    text = _FILL.sub(lambda found: _fill(found["kind"], found["arg"] or "", rng), template)
    return Case(group, _SECRET.sub(r"\1", text), tuple(_SECRET.findall(text)))


def secret_cases(seed: int) -> Iterator[Case]:
    """Yield every secret in its surroundings, with values made from a seed."""
    rng = random.Random(f"secrets {seed}")
    for group, templates in _TEMPLATES.items():
        if group != "ordinary":
            for template in templates:
                yield _make(group, template, rng)


def ordinary_cases(seed: int) -> Iterator[Case]:
    """Yield every ordinary line, with values made from a seed."""
    rng = random.Random(f"ordinary {seed}")
    for template in _TEMPLATES["ordinary"]:
        yield _make("ordinary", template, rng)
