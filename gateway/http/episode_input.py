"""An episode that comes by another way than a request, held to the rules of a request's body."""

from gateway.errors import GatewayError
from gateway.http.bodies import parse_body
from gateway.http.memory_bodies import EpisodeBody
from memory.episodes.episode import EpisodeDraft


def read_episode(raw: bytes, owner_id: str) -> EpisodeDraft:
    """Read JSON as an episode of an owner.

    Raises:
        ValueError: it is none; the text is the sentence that a request would get, said of the input.
    """
    if not raw.strip():
        raise ValueError("There is nothing to read; send a JSON object.")
    try:
        return parse_body(raw, EpisodeBody).draft(owner_id)
    except GatewayError as exc:
        said = exc.message.replace("The body", "The input").replace("`body`", "The input")
        raise ValueError(said) from None
