"""A client of the staged app that knows the contract's words."""

from typing import Any

import httpx

Json = dict[str, Any]


class Client(httpx.AsyncClient):
    """A client that knows the contract's words."""

    async def read(self, path: str, **params: Any) -> Any:
        """Return what a path answers with."""
        answer = await self.get(path, params=params or None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def pages(self, path: str, name: str, **params: Any) -> list[Any]:
        """Return what all pages of a list hold, from its newest page on."""
        found: list[Any] = []
        while True:
            page = await self.read(path, **params)
            found += page[name]
            if page["next_cursor"] is None:
                return found
            params["cursor"] = page["next_cursor"]

    async def messages(self, conversation_id: str, limit: int = 50) -> list[Json]:
        """Return a conversation's messages in order, read page by page from the newest on."""
        found: list[Json] = []
        before: str | None = ""
        while before is not None:
            path = f"/conversations/{conversation_id}/messages"
            page = await self.read(path, limit=limit, before=before)
            assert len(page["messages"]) <= limit
            found, before = page["messages"] + found, page["next_before"]
        return found

    async def say(self, message: str, conversation_id: str | None = None) -> Json:
        """Send a message and return its turn result."""
        body: Json = {"message": message, "conversation_id": conversation_id}
        result: Json = (await self.post("/chat", json=body)).json()
        return result

    async def new_conversation(self, **body: Any) -> str:
        """Start a conversation and return its id."""
        answer = await self.post("/new-conversation", json=body or None)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["conversation_id"])
