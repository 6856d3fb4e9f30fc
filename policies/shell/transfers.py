"""What `mv` and `cp` would do: from where, to where, and under which names things land."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from policies.paths.trees import TreeInspector
from policies.paths.workspace import Place, Workspace
from policies.shell.access import locate_content, locate_removed, locate_written
from policies.shell.options import Invocation
from policies.verdict import Deny
from policies.visible_text import show

_KEEPS_LINKS = ("recursive", "no-dereference", "P", "d")
"""Options of `cp` under which a link is copied as a link."""


@dataclass(frozen=True, slots=True)
class _Transfer:
    """The sources and the target of `mv` or `cp`."""

    sources: tuple[str, ...]
    target: str
    into: bool
    """The target is a folder, and each source lands in it under its own name."""


def _read_transfer(workspace: Workspace, invocation: Invocation) -> _Transfer | Deny:
    operands = invocation.operands
    target = invocation.meanings.get("target-directory")
    exact = invocation.has("no-target-directory")
    if target is not None and operands and not exact:
        return _Transfer(operands, target, into=True)
    *sources, last = operands or ("",)
    if target is not None or not sources or (exact and len(sources) > 1):
        return Deny(
            "operands",
            f"{invocation.command} needs at least one source and exactly one target.",
            f"Write it as: {invocation.command} source target.",
        )
    into = not exact and (len(sources) > 1 or Path(workspace.join(last)).is_dir())
    return _Transfer(tuple(sources), last, into=into)


def _locate_landing(workspace: Workspace, transfer: _Transfer, source: Place) -> Place | Deny:
    """Locate where one source will stand afterwards."""
    name = source.given.rstrip("/").rpartition("/")[2]
    if not transfer.into or name == ".":
        return locate_written(workspace, transfer.target)
    if not name or name == "..":
        return Deny(
            "source_name",
            f"{show(source.given)} does not say under which name it should land.",
            "Name the file or folder itself.",
        )
    return locate_written(workspace, f"{transfer.target.rstrip('/') or '/'}/{name}")


def _judge_moved(
    inspector: TreeInspector, source: str, transfer: _Transfer, _target: Place
) -> Deny | None:
    place = locate_removed(inspector.workspace, source)
    if isinstance(place, Deny):
        return place
    landing = _locate_landing(inspector.workspace, transfer, place)
    if isinstance(landing, Deny):
        return landing
    turned = inspector.find_turn_fault(place.real, landing)
    return turned or inspector.inspect_landing(place, landing)


def _judge_link(inspector: TreeInspector, source: str, transfer: _Transfer) -> Deny | None:
    """Refuse copying a link as a link if it would lead outside from where it lands."""
    link = inspector.workspace.locate(source, follow=False)
    if isinstance(link, Deny):
        return link
    landing = _locate_landing(inspector.workspace, transfer, link)
    return landing if isinstance(landing, Deny) else inspector.find_turn_fault(link.real, landing)


def _judge_copied(
    inspector: TreeInspector, source: str, transfer: _Transfer, target: Place
) -> Deny | None:
    place = inspector.workspace.locate(source)
    if isinstance(place, Deny):
        return place
    landing = place.find_read_fault() or _locate_landing(inspector.workspace, transfer, place)
    if isinstance(landing, Deny):
        return landing
    if not Path(place.real).is_dir():
        return None
    fault = inspector.inspect_landing(place, landing) or inspector.inspect_links(place)
    if fault is None and source.endswith("/"):  # some systems then copy what is inside it
        fault = inspector.inspect_landing(place, target) or inspector.inspect_overwritten(target)
    fault = fault or inspector.inspect_overwritten(landing)
    return fault or (None if target.is_root else inspector.inspect_links(target))


def _judge_each(
    inspector: TreeInspector,
    invocation: Invocation,
    judge: Callable[[TreeInspector, str, _Transfer, Place], Deny | None],
) -> Deny | None:
    transfer = _read_transfer(inspector.workspace, invocation)
    if isinstance(transfer, Deny):
        return transfer
    target = locate_written(inspector.workspace, transfer.target)
    if isinstance(target, Deny):
        return target
    keeps_links = invocation.command == "cp" and any(map(invocation.has, _KEEPS_LINKS))
    for source in transfer.sources:
        fault = judge(inspector, source, transfer, target)
        if fault is None and keeps_links:
            fault = _judge_link(inspector, source, transfer)
        if fault is not None:
            return fault
    return None


def judge_move(inspector: TreeInspector, invocation: Invocation) -> Deny | None:
    """Return why `mv` must not run; `None` if every source may leave and land as written."""
    return _judge_each(inspector, invocation, _judge_moved)


def judge_copy(inspector: TreeInspector, invocation: Invocation) -> Deny | None:
    """Return why `cp` must not run; `None` if every source may be read and land as written."""
    if not invocation.has("recursive"):  # with it, devices are made anew and not read
        sources = len(invocation.operands) - (not invocation.has("target-directory"))
        for path in invocation.operands[:sources]:
            place = locate_content(inspector.workspace, path)
            if isinstance(place, Deny):
                return place
    return _judge_each(inspector, invocation, _judge_copied)
