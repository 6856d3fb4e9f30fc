"""What every store of items must do.

`ItemStoreSuite` holds one test for each contract of `memory.itemstore`. A subclass supplies the fixture
`opens` (`tests.conformance.suites.item_values.Opening`) and nothing else. Needs pytest and pytest-asyncio;
nothing that serves imports it.
"""

from tests.conformance.suites.item_search import ItemSearchSuite
from tests.conformance.suites.item_storage import ItemKeepingSuite


class ItemStoreSuite(ItemKeepingSuite, ItemSearchSuite):
    """The contracts of `ItemStore`."""
