"""The files of `deploy` fit their schemas and the program: no cluster and no Docker is asked."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml  # type: ignore[import-untyped]

from gateway.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = (ROOT / "compose.yaml", ROOT / "deploy/nodes/compose.yaml")
KUBERNETES, KEDA = (ROOT / "deploy/kubernetes" / name for name in ("candor.yaml", "keda.yaml"))
OLDEST, NEWEST = "1.29", "1.37"
TO_CLOSE_S = 15
_VARIABLE = re.compile(r"\$\(\w+\)|\$\{\w+(?::-(?P<default>[^}]*)|:\?[^}]*)?\}")


def documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def deployment() -> Any:
    (found,) = (item for item in documents(KUBERNETES) if item["kind"] == "Deployment")
    return found["spec"]["template"]["spec"]


@pytest.mark.parametrize("path", COMPOSE, ids=str)
def test_compose_files_are_of_the_compose_specification(path: Path) -> None:
    vendored = files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json")
    (document,) = documents(path)
    jsonschema.validate(document, json.loads(vendored.read_text(encoding="utf-8")))


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_manifests_are_of_kubernetes(version: str) -> None:
    for manifest in documents(KUBERNETES):
        kubernetes_validate.validate(manifest, version, strict=True)


def test_manifests_are_of_keda() -> None:
    """`tests/corpus/keda.json` says whence its schemas are; KEDA drops fields that they do not name."""
    schemas = json.loads((ROOT / "tests/corpus/keda.json").read_text(encoding="utf-8"))
    for manifest in documents(KEDA):
        jsonschema.validate(manifest, closed(schemas[manifest["kind"]]))


def closed(schema: Any) -> Any:
    """Refuse fields that an object does not name."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    return {"additionalProperties": False, **parts} if "properties" in schema else parts


@dataclass(frozen=True, slots=True)
class Node:
    """A container of Candor."""

    where: str
    grace_s: float
    """From SIGTERM to SIGKILL."""
    environment: Mapping[str, str]


def nodes() -> list[Node]:
    pod = deployment()
    (container,) = pod["containers"]
    pause, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert pause == "sleep"
    grace_s = pod["terminationGracePeriodSeconds"] - float(seconds)
    given = {item["name"]: item.get("value", "") for item in container["env"]}
    found = [Node("kubernetes", grace_s, given)]
    for path in COMPOSE:
        (document,) = documents(path)
        for name, service in document["services"].items():
            if service.get("image") == "candor":
                grace_s = float(service["stop_grace_period"].removesuffix("s"))
                found.append(Node(f"{path.parent.name}/{name}", grace_s, service["environment"]))
    return found


@pytest.mark.parametrize("node", nodes(), ids=lambda node: node.where)
def test_nodes_have_settings_that_the_program_takes_and_the_time_to_drain(node: Node) -> None:
    """Variables that the runtime fills in get their defaults."""
    filled = {
        name: _VARIABLE.sub(lambda found: found["default"] or "10.0.0.5", text)
        for name, text in node.environment.items()
    }
    settings = Settings.from_environ(filled)
    assert node.grace_s >= settings.shutdown_grace_s + settings.interrupt_grace_s + TO_CLOSE_S


def test_the_service_covers_nothing_of_proc_so_that_boxes_get_their_own() -> None:
    """The kernel refuses a new /proc in a user namespace where a part of the present one is hidden (mount_namespaces(7))."""
    lines = (ROOT / "deploy/candor.service").read_text(encoding="utf-8").splitlines()
    directives = {line.partition("=")[0] for line in lines}
    covering = {
        "ProtectKernelTunables",
        "ProtectKernelLogs",
        "ProtectHostname",
        "ProcSubset",
        "InaccessiblePaths",
    }
    assert "ProtectSystem" in directives
    assert not directives & covering


def test_a_node_is_live_without_its_database_and_ready_only_with_it() -> None:
    (container,) = deployment()["containers"]
    asked = {
        name: container[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "liveness", "readiness")
    }
    expected = {"startup": "/healthz", "liveness": "/healthz", "readiness": "/healthz/ready"}
    assert asked == expected
