"""Runs a prewarmed client once, so that its first turn is as quick as its second.

Code that runs for the first time costs the agent program some 100 ms. With the relay, a prompt is
answered by the relay and then rewound; without it, the hook blocks a prompt, which warms less. What
is left of the prompt is a transcript for the caller to delete; the agent program begins a new one
with the first turn.
"""

import secrets

import anyio

from gateway.engine.client import SdkClient
from gateway.engine.events import RunFinished, TextDone
from gateway.engine.protocol import ClientDead, EngineUnavailable, Prompt
from gateway.engine.side_query import NoTools
from gateway.relay.canned import WARM_UP_TEXT
from gateway.relay.supervisor import RelayProcess

_TIMEOUT_S = 15.0


class WarmUpFailed(EngineUnavailable):
    """The client must not be used: something of the warm-up may be left in it."""


async def warm_up(client: SdkClient, relay: RelayProcess | None) -> str:
    """Run a client once and return the session whose transcript is to be deleted.

    Raise `WarmUpFailed` if something was not as expected.
    """
    mark = f"warm-up {secrets.token_hex(16)}"
    prompt = Prompt(text=mark, gatekeeper=NoTools(), is_blocked=relay is None)
    try:
        with anyio.fail_after(_TIMEOUT_S):
            if relay is not None:
                relay.set_warm_up(client.client_id, mark)
            run = await client.start_run(prompt)
            events = [event async for event in run.events()]
            texts = [event.text for event in events if isinstance(event, TextDone)]
            last = events[-1]
            answered = isinstance(last, RunFinished) and not last.is_error
            if not answered or texts != ([] if relay is None else [WARM_UP_TEXT]):
                raise WarmUpFailed("The warm-up was answered otherwise.", detail=repr(events[-4:]))
            if relay is not None:
                if not await client.rewind(run):
                    raise WarmUpFailed("The warm-up could not be rewound.")
                relay.set_warm_up(client.client_id, None)
            return client.session.leave()
    except (TimeoutError, ClientDead) as exc:
        raise WarmUpFailed("The warm-up did not end.", detail=str(exc)) from exc
