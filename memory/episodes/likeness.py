"""What makes an episode the same as a stored one: an equal text, or the same place in a thread."""

import hashlib
import json

from memory.episodes.episode import Episode


def fingerprint_of(episode: Episode) -> bytes:
    """Return 16 bytes that equal texts of one realm share, ignoring white space.

    A record of a thread is identified by its place there.
    """
    if episode.thread is not None:
        place = json.dumps([episode.thread, episode.position])
        return _digest(realm_of(episode), place, "place")
    return _digest(realm_of(episode), f"{episode.title}\n{episode.sections.text}")


def realm_of(episode: Episode) -> str:
    """Return owner and labels as one text; nothing is merged across them."""
    return json.dumps([episode.scope.owner_id, episode.scope.labels], ensure_ascii=False)


def _digest(*parts: str) -> bytes:
    plain = "\0".join(" ".join(part.split()) for part in parts)
    return hashlib.blake2b(plain.encode("utf-8", "surrogatepass"), digest_size=16).digest()
