import re

from gateway.ids import new_approval_id, new_conversation_id, new_request_id, new_turn_id

KINDS = [
    (new_conversation_id, "cnv"),
    (new_turn_id, "trn"),
    (new_approval_id, "apr"),
    (new_request_id, "req"),
]


def test_an_id_is_its_prefix_and_128_random_bits() -> None:
    for make, prefix in KINDS:
        assert re.fullmatch(rf"{prefix}_[a-z2-7]{{26}}", make())
        made = [make().removeprefix(f"{prefix}_") for _ in range(2000)]
        assert len(set(made)) == 2000
        for place in range(25):
            assert len({text[place] for text in made}) == 32, "each character is free"
