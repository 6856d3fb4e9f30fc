"""Whether two incidents can have the same cause at all, by what surrounds them.

The failure layer, the runtime and the services of both are laid side by side. What one of them does not
say speaks for nothing and against nothing; what both say and say differently is a conflict, and a
conflict keeps two cases apart however alike their words are.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from memory.cases.case import CaseMetadata

_NAME: Final = re.compile(r"k8s|[^\W\d_]{2,}")
_BREAK: Final = re.compile(r"[\W_]+")
_RUNTIMES: Final = (
    "java jvm jdk jre openjdk hotspot graalvm corretto temurin zulu dragonwell springboot spring tomcat",
    "python cpython py pypy",
    "go golang",
    "node nodejs js javascript typescript",
    "dotnet net clr csharp",
    "kubernetes k8s kube",
    "linux ubuntu debian centos rhel alpine",
    "php fpm",
    "ruby mri",
)
_FAMILY: Final = {word: group.split()[0] for group in _RUNTIMES for word in group.split()}
_NOT_TELLING: Final = frozenset(
    (
        "service",
        "services",
        "svc",
        "server",
        "app",
        "application",
        "api",
        "system",
        "prod",
        "production",
        "staging",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What two cases say alike of their surroundings, and what they say differently.

    The names of fields of `CaseMetadata`; what either does not say is in neither.
    """

    matches: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def compare_structure(one: CaseMetadata, other: CaseMetadata) -> Structure:
    """Lay the surroundings of two cases side by side; the order of the two plays no part."""
    verdicts = {
        "failure_layer": _agree(_layer(one), _layer(other)),
        "runtime": _agree(_runtimes(one.runtime), _runtimes(other.runtime)),
        "related_services": _agree(_services(one), _services(other)),
    }
    return Structure(
        matches=tuple(name for name, agreed in verdicts.items() if agreed is True),
        conflicts=tuple(name for name, agreed in verdicts.items() if agreed is False),
    )


def _agree(mine: frozenset[str], theirs: frozenset[str]) -> bool | None:
    """Whether they have something in common; None where either says nothing."""
    return bool(mine & theirs) if mine and theirs else None


def _layer(metadata: CaseMetadata) -> frozenset[str]:
    layer = metadata.failure_layer
    return frozenset() if layer in {None, "unknown"} else frozenset({str(layer)})


def _runtimes(runtime: str | None) -> frozenset[str]:
    """Name the runtimes, versions apart: `Java 17`, `openjdk-11` and `JVM` are one."""
    words = _NAME.findall(_folded(runtime or ""))
    return frozenset(_FAMILY.get(word, word) for word in words)


def _services(metadata: CaseMetadata) -> frozenset[str]:
    return frozenset(name for name in map(_service, metadata.related_services) if name)


def _service(name: str) -> str:
    """Bring a service's name to one form: `order_service`, `Order-Svc` and `order` are one."""
    words = [word for word in _BREAK.split(_folded(name)) if word]
    telling = [word for word in words if word not in _NOT_TELLING]
    return "-".join(telling or words)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
