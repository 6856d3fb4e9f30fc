"""Compares the surroundings of two incidents: they match, conflict, or neither.

The failure layer, the runtime and the services of both are compared. A value that either case lacks
counts neither way. A conflict keeps two cases apart however similar their texts are.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from memory.cases.case import CaseMetadata

_NAME: Final = re.compile(r"k8s|[^\W\d_]{2,}")
_BREAK: Final = re.compile(r"[\W_]+")
# a runtime and its other names
_RUNTIMES: Final = (
    (
        "java jvm jdk jre openjdk hotspot graalvm corretto temurin zulu dragonwell springboot "
        "spring tomcat"
    ),
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
_GENERIC: Final = frozenset(
    "service services svc server app application api system prod production staging".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """The fields of `CaseMetadata` in which two cases match, and in which they conflict."""

    matches: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


def compare_structure(one: CaseMetadata, other: CaseMetadata) -> Structure:
    """Return how the surroundings of two cases compare; symmetric."""
    compared = {
        "failure_layer": (_layer(one), _layer(other)),
        "runtime": (_runtimes(one), _runtimes(other)),
        "related_services": (_services(one), _services(other)),
    }
    known = {name: bool(a & b) for name, (a, b) in compared.items() if a and b}
    return Structure(
        matches=tuple(name for name, is_shared in known.items() if is_shared),
        conflicts=tuple(name for name, is_shared in known.items() if not is_shared),
    )


def _layer(metadata: CaseMetadata) -> set[str]:
    return {str(metadata.failure_layer)} - {"None", "unknown"}


def _runtimes(metadata: CaseMetadata) -> set[str]:
    """Return the runtimes without versions: `Java 17`, `openjdk-11` and `JVM` are one."""
    return {_FAMILY.get(word, word) for word in _NAME.findall(_folded(metadata.runtime or ""))}


def _services(metadata: CaseMetadata) -> set[str]:
    """Return the services in one spelling: `order_service`, `Order-Svc` and `order` are one."""
    names = set()
    for name in metadata.related_services:
        words = [word for word in _BREAK.split(_folded(name)) if word]
        names.add("-".join([word for word in words if word not in _GENERIC] or words))
    return names - {""}


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
