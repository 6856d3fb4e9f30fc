"""OpenAI's own client on a live server that runs the demo model as any service."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import openai

from tests.support.demo_service import demo_model_as_a_service
from tests.support.live_server import LiveServer, started_server


class CountingClient(openai.AsyncOpenAI):
    """The client, with what it sends and what is answered."""

    def __init__(self, server: LiveServer, **options: Any) -> None:
        self.requests: list[httpx.Request] = []
        self.answers: list[httpx.Response] = []

        async def sent(request: httpx.Request) -> None:  # noqa: RUF029  as httpx wants
            self.requests.append(request)

        async def answered(response: httpx.Response) -> None:  # noqa: RUF029
            self.answers.append(response)

        http = openai.DefaultAsyncHttpxClient(
            event_hooks={"request": [sent], "response": [answered]}, trust_env=False
        )
        base_url = f"{server.url}/openai/v1"
        super().__init__(base_url=base_url, api_key="any", http_client=http, **options)


@contextmanager
def server_with_side_model(directory: Path) -> Iterator[LiveServer]:
    """Run the server on the demo model as any service, so that there is a side model, too."""
    with (
        demo_model_as_a_service() as url,
        started_server(
            directory,
            command=None,
            model="candor-demo",
            side_model="candor-demo",
            environ={"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"},
        ) as server,
    ):
        yield server
