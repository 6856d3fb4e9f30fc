"""What every store of items must do.

`ItemStoreSuite` holds one test for each contract of `memory.itemstore`. A subclass supplies the fixture
`open_items` (`memory.testing.item_values.Opening`) and nothing else. Needs pytest and pytest-asyncio;
nothing that serves imports it.
"""

from memory.testing.item_keeping import ItemKeepingSuite
from memory.testing.item_search import ItemSearchSuite


class ItemStoreSuite(ItemKeepingSuite, ItemSearchSuite):
    """The contracts of `ItemStore`."""
