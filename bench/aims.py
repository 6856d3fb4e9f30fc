"""The aims for the path of a turn, measured in one run: first texts, flushes, streams, the server's memory."""

from collections.abc import Sequence

from bench import first_text, flushes, streams
from bench.first_text import BURST, ITEMS
from bench.report import save, show
from bench.warm_turns import BARE, FILLED, FIRST_TEXT, LAST_AT_ONCE, OFF


async def run(rounds: int, peers: Sequence[str] = (), items: int = ITEMS) -> None:
    """Measure all of it and print one table."""
    texts = await first_text.run(rounds, peers, items)
    small = (await flushes.run(rounds)).get("small")
    flow = await streams.run(rounds)
    warm, cpu = texts.medians_ms[FIRST_TEXT], texts.server_cpu_ms
    rows: list[tuple[str, float | None, float]] = [
        ("warm first text, memory off, over the bare SDK, ms", warm[OFF] - warm[BARE], 8),
        ("warm first text, filled memory over memory off, ms", warm[FILLED] - warm[OFF], 6),
        ("server's processor a turn, filled memory over off, ms", cpu[FILLED] - cpu[OFF], 8),
        (f"{LAST_AT_ONCE}, of the bare SDK's", texts.ratio(LAST_AT_ONCE, FILLED), 1.4),
        ("new conversation, first text, of connect and ask", texts.ratio("fresh"), 0.17),
        ("woken, of resume and ask", texts.ratio("woken"), 1.0),
        ("opened first, of resume and ask", texts.ratio("opened first"), 1.0),
        (f"last of {BURST} new at once, of the bare SDK's", texts.ratio(f"last of {BURST}"), 0.9),
        (f"last of {BURST} again, of the bare SDK's", texts.ratio(f"last of {BURST} again"), 0.9),
        ("flushes a turn", sum(small.values()) if small else None, 4),
        ("server's processor a piece (60 × 50/s), µs", flow["server_cpu_us_a_piece"], 200),
        ("60 streams, p99 from agent to reader, ms", flow["p99_ms"], 50),
        ("server's memory with a filled memory, MB", texts.server_mb, 130),
    ]
    table = [
        [what, "–" if value is None else f"{value:.2f}", f"{aim:g}"] for what, value, aim in rows
    ]
    show("Aims", ["figure", "measured", "at most"], table)
    save("aims", {what: {"measured": value, "aim": aim} for what, value, aim in rows})
