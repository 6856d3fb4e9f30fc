import pytest
from blockbuster import BlockBuster


@pytest.fixture(autouse=True)
def _starting_may_block(_blocking_calls_fail: BlockBuster) -> None:
    """Opening takes the lock and reads the migrations on the loop: nobody is served yet."""
    for function in _blocking_calls_fail.functions.values():
        function.can_block_in("gateway/assemble.py", {"open_services"})
