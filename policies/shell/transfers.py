"""What `mv` and `cp` would do: from where, to where, and under which names things land."""

from dataclasses import dataclass
from pathlib import Path

from policies.paths.access import locate_removed, locate_written
from policies.paths.trees import Inspector
from policies.paths.workspace import Place, Workspace, show
from policies.shell.options import Invocation
from policies.verdict import Deny

_KEEPS_LINKS = ("recursive", "no-dereference", "P", "d")
"""Options of `cp` under which a link is copied as a link."""


@dataclass(frozen=True, slots=True)
class _Transfer:
    """The sources and the target of `mv` or `cp`."""

    sources: tuple[str, ...]
    target: str
    into: bool
    """The target is a folder that the sources land in under their own names."""


def _read_transfer(workspace: Workspace, invocation: Invocation) -> _Transfer | Deny:
    operands = invocation.operands
    target = invocation.meanings.get("target-directory")
    exact = invocation.has("no-target-directory")
    if target is not None:
        if exact or not operands:
            return _refuse_operands(invocation)
        return _Transfer(operands, target, into=True)
    two = 2
    if len(operands) < two or (exact and len(operands) != two):
        return _refuse_operands(invocation)
    into = not exact and (len(operands) > two or Path(workspace.join(operands[-1])).is_dir())
    return _Transfer(operands[:-1], operands[-1], into=into)


def _refuse_operands(invocation: Invocation) -> Deny:
    return Deny(
        "operands",
        f"{invocation.command} needs at least one source and exactly one target.",
        f"Write it as: {invocation.command} source target.",
    )


def _locate_landing(workspace: Workspace, transfer: _Transfer, source: Place) -> Place | Deny:
    """Find where one source will stand afterwards."""
    if not transfer.into:
        return locate_written(workspace, transfer.target)
    name = source.given.rstrip("/").rpartition("/")[2]
    if name == ".":
        return locate_written(workspace, transfer.target)
    if not name or name == "..":
        return Deny(
            "source_name",
            f"{show(source.given)} does not say under which name it should land.",
            "Name the file or folder itself.",
        )
    return locate_written(workspace, f"{transfer.target.rstrip('/') or '/'}/{name}")


def _judge_move(inspector: Inspector, source: str, transfer: _Transfer) -> Deny | None:
    place = locate_removed(inspector.workspace, source)
    if isinstance(place, Deny):
        return place
    landing = _locate_landing(inspector.workspace, transfer, place)
    if isinstance(landing, Deny):
        return landing
    turned = inspector.inspect_turn(place.real, landing.real)
    return turned or inspector.inspect_landing(place, landing)


def _judge_link_copy(inspector: Inspector, source: str, transfer: _Transfer) -> Deny | None:
    """A link that is copied as one must not lead outside from where it lands."""
    link = inspector.workspace.locate(source, follow=False)
    if isinstance(link, Deny):
        return link
    landing = _locate_landing(inspector.workspace, transfer, link)
    if isinstance(landing, Deny):
        return landing
    return inspector.inspect_turn(link.real, landing.real)


def _judge_copy(inspector: Inspector, source: str, transfer: _Transfer) -> Deny | None:
    place = inspector.workspace.locate(source)
    if isinstance(place, Deny):
        return place
    landing = place.find_read_fault() or _locate_landing(inspector.workspace, transfer, place)
    target = locate_written(inspector.workspace, transfer.target)
    if isinstance(landing, Deny):
        return landing
    if isinstance(target, Deny):
        return target
    if not Path(place.real).is_dir():
        return None
    fault = inspector.inspect_landing(place, landing) or inspector.inspect_links(place)
    if fault is None and source.endswith("/"):  # some systems then copy what is inside it
        fault = inspector.inspect_landing(place, target) or inspector.inspect_overwritten(target)
    fault = fault or inspector.inspect_overwritten(landing)
    return fault or (None if target.is_root else inspector.inspect_links(target))


def judge_transfer(inspector: Inspector, invocation: Invocation) -> Deny | None:
    """Say why a transfer must not happen; `None`: every source may leave and land as written."""
    transfer = _read_transfer(inspector.workspace, invocation)
    if isinstance(transfer, Deny):
        return transfer
    target = locate_written(inspector.workspace, transfer.target)
    if isinstance(target, Deny):
        return target
    judge = _judge_move if invocation.command == "mv" else _judge_copy
    keeps_links = invocation.command == "cp" and any(map(invocation.has, _KEEPS_LINKS))
    for source in transfer.sources:
        fault = judge(inspector, source, transfer)
        if fault is None and keeps_links:
            fault = _judge_link_copy(inspector, source, transfer)
        if fault is not None:
            return fault
    return None
