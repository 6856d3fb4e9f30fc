"""What every store of cases must do.

`CaseStoreSuite` holds one test for each contract of `memory.cases.store`. A subclass supplies the
fixture `opens` and nothing else. Needs pytest and pytest-asyncio; nothing that serves imports it.
"""

from tests.conformance.suites.case_records import CaseBelongingsSuite
from tests.conformance.suites.case_storage import CaseKeepingSuite


class CaseStoreSuite(CaseKeepingSuite, CaseBelongingsSuite):
    """The contracts of `CaseStore`."""
