import re
from collections.abc import Callable

import pytest

from gateway.ids import new_approval_id, new_conversation_id, new_request_id, new_turn_id

KINDS = [
    (new_conversation_id, "cnv"),
    (new_turn_id, "trn"),
    (new_approval_id, "apr"),
    (new_request_id, "req"),
]


@pytest.mark.parametrize(("make", "prefix"), KINDS)
def test_an_id_is_its_prefix_and_128_random_bits(make: Callable[[], str], prefix: str) -> None:
    assert re.fullmatch(rf"{prefix}_[a-z2-7]{{26}}", make())


@pytest.mark.parametrize(("make", "prefix"), KINDS)
def test_no_id_is_made_twice(make: Callable[[], str], prefix: str) -> None:
    made = [make().removeprefix(f"{prefix}_") for _ in range(2000)]
    assert len(set(made)) == 2000
    for place in range(25):
        assert len({one[place] for one in made}) == 32, "each character is free"
