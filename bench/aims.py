"""The aims for the path of a turn, measured in one run: first texts, flushes, streams, the server's memory."""

from collections.abc import Sequence

from bench import first_text, flushes, streams
from bench.first_text import BARE, BURST, GATEWAY
from bench.report import save, show


async def run(rounds: int, peers: Sequence[str] = ()) -> None:
    """Measure all of it and print one table."""
    texts = await first_text.run(rounds, peers)
    small = (await flushes.run(rounds)).get("small")
    flow = await streams.run(rounds)

    def ratio(kind: str) -> float:
        return texts[kind][GATEWAY] / texts[kind][BARE]

    warm = texts["warm"]
    rows: list[tuple[str, float | None, float]] = [
        ("warm first text over the bare SDK, ms", warm[GATEWAY] - warm[BARE], 8),
        ("new conversation, first text, of connect and ask", ratio("fresh"), 0.17),
        ("woken, of resume and ask", ratio("woken"), 1.0),
        ("opened first, of resume and ask", ratio("opened first"), 1.0),
        (f"last of {BURST} new at once, of the bare SDK's", ratio(f"last of {BURST}"), 0.9),
        (f"last of {BURST} again, of the bare SDK's", ratio(f"last of {BURST} again"), 0.9),
        ("flushes a turn", sum(small.values()) if small else None, 4),
        ("server's processor a piece (60 × 50/s), µs", flow["server_cpu_us_a_piece"], 200),
        ("60 streams, p99 from agent to reader, ms", flow["p99_ms"], 50),
        ("server's memory after two turns, MB", texts["memory"][GATEWAY], 130),
    ]
    table = [
        [what, "–" if value is None else f"{value:.2f}", f"{aim:g}"] for what, value, aim in rows
    ]
    show("Aims", ["figure", "measured", "at most"], table)
    save("aims", {what: {"measured": value, "aim": aim} for what, value, aim in rows})
