"""Asks a small model one question outside of all conversations.

Each question gets its own agent process, in the same sandbox and environment as any other, without
tools and the workspace's instructions, and with a gatekeeper that denies everything. Its session is
deleted.
"""

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from gateway.engine.events import ModelFailed, RunFinished, TextDone
from gateway.engine.protocol import (
    AgentClient,
    ClientDead,
    ClientSpec,
    Engine,
    EngineUnavailable,
    Prompt,
    SessionOrigin,
)
from memory.remote.small_model import ModelUnavailable
from policies.calls import ToolCall
from policies.verdict import Deny

_CLOSE_S = 10.0
_SIDE_BY_SIDE = 2
"""The most questions at once; each is a process."""

_NO_TOOLS = Deny("side_query", "A side query has no tools.", "Answer in words.")


class SideQuery:
    """See `AskModel`. `make_engine` creates the engine of one question in the question's task
    group.
    """

    def __init__(self, make_engine: Callable[[TaskGroup], Engine], model: str | None) -> None:
        self._make_engine = make_engine
        self._spec = ClientSpec(model=model)
        self._room = anyio.CapacityLimiter(_SIDE_BY_SIDE)

    async def __call__(self, *, system: str, prompt: str, timeout_s: float) -> str:
        """Return the model's answer; on cancellation or timeout its process is ended.

        Raise `ModelUnavailable` if there is no answer within the time.
        """
        try:
            with anyio.fail_after(timeout_s):
                async with self._room:
                    return await self._ask(f"{system}\n\n{prompt}")
        except TimeoutError as exc:
            raise ModelUnavailable("The model did not answer in time.") from exc
        except (EngineUnavailable, ClientDead) as exc:
            raise ModelUnavailable("The model could not be asked.") from exc

    async def _ask(self, text: str) -> str:
        failure: Exception | None = None
        answer = ""
        async with anyio.create_task_group() as tasks:
            engine = self._make_engine(tasks)
            try:
                answer = await _asked(engine, self._spec, text)
            except (EngineUnavailable, ClientDead, ModelUnavailable) as exc:
                failure = exc  # raised outside of the task group, not in an exception group
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return answer


async def _asked(engine: Engine, spec: ClientSpec, text: str) -> str:
    client = await engine.connect(spec, SessionOrigin())
    try:
        return await _answer(client, text)
    finally:
        with anyio.move_on_after(_CLOSE_S, shield=True):
            await client.kill()
            if client.session_id is not None:
                await engine.forget_session(client.session_id)


async def _answer(client: AgentClient, text: str) -> str:
    """Return the model's text. Raise `ModelUnavailable` if the run failed or had no text."""
    said: list[str] = []
    failed = False
    run = await client.start_run(Prompt(text=text, gatekeeper=NoTools()))
    async for event in run.events():
        match event:
            case TextDone():
                said.append(event.text)
            case ModelFailed():
                failed = True
            case RunFinished():
                failed = failed or event.is_error
            case _:
                pass
    if failed or not said:
        raise ModelUnavailable("The model gave no answer.")
    return "\n\n".join(said)


class NoTools:
    """Denies every call."""

    async def judge(self, call: ToolCall) -> Deny:  # noqa: ARG002
        """Deny."""
        return _NO_TOOLS

    decide = judge

    def returned(self, index: int) -> None:
        """Do nothing."""
