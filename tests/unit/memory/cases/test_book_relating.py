"""The book of cases: relations that both ends know, whatever is rewritten."""

from pathlib import Path

from memory.cases.case import CaseContent
from memory.cases.relations import Nearby
from memory.scope import Scope
from tests.support.cases import (
    INCIDENT,
    OTHER_INCIDENT,
    Listed,
    caller,
    case_world,
    retold,
)


async def test_relations_to_another_apps_case_or_a_stale_one_are_not_told(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        common = (await world.upsert(caller("cnv_0", app=None), **INCIDENT)).case.case_id
        bank = (await world.upsert(caller("cnv_1", app="bank"), **INCIDENT)).case.case_id
        stale = (await world.upsert(caller("cnv_2", environment="e"), **INCIDENT)).case.case_id
        mine = (await world.upsert(caller("cnv_3"), **INCIDENT)).case.case_id
        everywhere = caller("cnv_4", app=None)
        told = await world.upsert(everywhere, case_id=common, **INCIDENT)
        assert {case.case_id for case in told.similar_cases} == {bank, stale, mine}
        await world.vote(caller("cnv_5"), stale, signal="stale")
        by_person = caller(None, by="person")
        unchanged = await world.upsert(caller("cnv_6"), case_id=common, **INCIDENT)
        updated = await world.upsert(by_person, case_id=common, resolution="close them")
        stored = {relation.case_id for relation in (await world.store.related([common]))[common]}
        assert stored == {bank, stale, mine}
        assert (unchanged.status, updated.status) == ("unchanged", "updated")
        for answer in (unchanged, updated):
            assert [case.case_id for case in answer.similar_cases] == [mine]
        merged = await world.upsert(caller("cnv_7"), **retold(INCIDENT))
        assert (merged.status, merged.case.case_id) == ("merged", mine)
        assert [case.case_id for case in merged.similar_cases] == [common]


async def test_both_ends_know_of_a_relation_also_after_a_rewriting(tmp_path: Path) -> None:
    async with case_world(tmp_path) as world:
        first = (await world.upsert(caller(), **INCIDENT)).case.case_id
        second = await world.upsert(caller("cnv_2", environment="staging"), **INCIDENT)
        (relation,) = second.similar_cases
        assert (relation.case_id, relation.relation) == (first, "same_root_cause")
        known = await world.store.related([first])
        assert [relation.case_id for relation in known[first]] == [second.case.case_id]
        rewritten = {**OTHER_INCIDENT, "case_id": first, "metadata": {"failure_layer": "os"}}
        assert (await world.upsert(caller(), **rewritten)).similar_cases == ()
        assert (await world.store.related([second.case.case_id]))[second.case.case_id] == []


class Forgetful(Listed):
    """Candidates that bring nothing any more once they are tired."""

    tired = False

    async def candidates(self, content: CaseContent, scope: Scope, limit: int) -> Nearby:
        nothing = Nearby(cases=())
        return nothing if self.tired else await super().candidates(content, scope, limit)


async def test_what_was_related_stays_so_where_the_search_does_not_bring_it(
    tmp_path: Path,
) -> None:
    async with case_world(tmp_path) as first:
        candidates = Forgetful(first.database, first.store)
        async with case_world(tmp_path, candidates=candidates) as world:
            one = (await world.upsert(caller(), **INCIDENT)).case.case_id
            other = await world.upsert(caller("cnv_2", environment="staging"), **INCIDENT)
            candidates.tired = True
            answer = await world.upsert(caller(), case_id=one, resolution="close them at once")
            assert [known.case_id for known in answer.similar_cases] == [other.case.case_id]


async def test_a_case_that_many_name_keeps_them_all_when_it_is_rewritten(tmp_path: Path) -> None:
    ids = (f"cas_{n}" for n in range(9))  # of equally near ones the lesser ids are named
    async with case_world(tmp_path, new_id=lambda: next(ids)) as world:
        for n in range(9):
            await world.upsert(caller(f"cnv_{n}", environment=f"e{n}"), **INCIDENT)
        before = {relation.case_id for relation in (await world.store.related(["cas_0"]))["cas_0"]}
        assert before == {f"cas_{n}" for n in range(1, 9)}
        answer = await world.upsert(caller("cnv_0"), case_id="cas_0", resolution="close them")
        assert {case.case_id for case in answer.similar_cases} == before
        after = (await world.store.related(["cas_0"]))["cas_0"]
        assert list(answer.similar_cases) == list(after)
