"""What the agent or the person corrects in memory: what holds afterwards, and what an undo restores."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.ids import LOCAL_USER as ME
from memory.facts.fact import Fact
from tests.support.fact_turns import (
    LOCKER,
    MINE,
    answer_of,
    context_of,
    forget,
    held,
    keep,
    remember,
    saved_ids,
    saying,
)
from tests.support.services import running_services


async def test_a_correction_for_whose_line_there_is_no_room_is_kept_without_it(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        facts = services.open_memory.facts
        (old,) = saved_ids(await keep(services, "My name is Bo", lasting=True))
        await facts.put_profile(ME, f"{'x' * 1980}\n- My name is Bo")
        result = await keep(services, "My name is Robert Smith", replaces=[old])
        (new,) = saved_ids(result)
        fact = await facts.store.get(new, MINE)
        assert fact is not None
        assert (fact.text, fact.lasting) == ("My name is Robert Smith", False)
        assert await facts.store.profile_text(ME) == "x" * 1980


async def test_what_replaces_lasting_facts_needs_no_room_beside_them(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        old = [
            saved_ids(await keep(services, f"{letter * 940} is old", lasting=True))[0]
            for letter in "ab"
        ]
        newer = f"{'c' * 1100} is new"
        result = await keep(services, newer, replaces=old)
        assert result["tools"][0]["status"] == "ok"
        assert await services.open_memory.facts.store.profile_text(ME) == f"- {newer}"


async def test_a_correction_replaces_and_its_undo_restores(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        memory = services.open_memory
        (first,) = saved_ids(await keep(services, "the demo is on Thursday", lasting=True))
        result = await keep(services, "the demo is on Friday now", replaces=[first])
        (second,) = saved_ids(result)
        old, new = [await memory.facts.store.get(one, MINE) for one in (first, second)]
        assert isinstance(old, Fact)
        assert isinstance(new, Fact)
        assert (old.superseded_by, old.valid_until, new.lasting) == (new.id, new.valid_from, True)
        assert await memory.facts.store.replaced_by(second) == [first]
        assert await memory.facts.store.profile_text(ME) == "- the demo is on Friday now"
        text = await context_of(services, await services.ask("When is the demo?"))
        assert "Friday" in text
        assert "Thursday" not in text
        everything = await services.ask("What is in your memory?")
        titles = [shown["title"] for shown in everything["memory"]["injected"]]
        assert "the demo is on Friday now" in titles
        assert not [title for title in titles if "Thursday" in title], "nor who told it"
        late = await keep(services, "the demo is off", replaces=[first])
        assert "holds no longer" in late["tools"][0]["error"]
        assert await memory.forget(second, MINE)
        assert await held(services) == ["the demo is on Thursday"]
        assert await memory.facts.store.profile_text(ME) == "- the demo is on Thursday"
        await memory.facts.edit(first, MINE, lasting=False)
        assert await memory.facts.store.profile_text(ME) == ""


@pytest.mark.parametrize("text", ["the demo is on Thursday", "演示在星期四"])
async def test_a_lasting_fact_keeps_its_line_when_an_equal_one_is_forgotten(
    tmp_path: Path, text: str
) -> None:
    """It was replaced earlier, or is kept for a project."""
    async with running_services(tmp_path) as services:
        memory = services.open_memory
        facts = memory.facts
        first = await facts.write(text, MINE)
        (second,) = saved_ids(await keep(services, "it is on Friday", replaces=[first.id]))
        of_gym = await facts.write(text, replace(MINE, project_id="gym"))
        (lasting,) = saved_ids(await keep(services, text, replaces=[second], lasting=True))

        for fact in (first, of_gym):
            assert await memory.forget(fact.id, MINE)
            assert await facts.store.profile_text(ME) == f"- {text}"
        assert await memory.forget(lasting, MINE)
        assert await facts.store.profile_text(ME) == ""


@pytest.mark.parametrize("bus", ["the bus is number 12", "公交是12路"])
async def test_an_equal_fact_does_not_come_back_though_one_that_went_with_it_was_forgotten(
    tmp_path: Path, bus: str
) -> None:
    """Both had been replaced at once, the other one in the place of an earlier fact."""
    async with running_services(tmp_path) as services:
        (equal,) = saved_ids(await keep(services, bus))
        (early,) = saved_ids(await keep(services, "the tram is number 1"))
        (other,) = saved_ids(await keep(services, "the tram is number 2", replaces=[early]))
        (newest,) = saved_ids(await keep(services, bus, replaces=[other]))
        memory = services.open_memory
        assert await memory.facts.store.replaced_by(newest) == [equal, other]

        assert await memory.forget(other, MINE)
        assert await held(services) == [bus]
        assert await memory.forget(newest, MINE)
        assert await held(services) == ["the tram is number 1"]


async def test_an_equal_fact_of_the_same_moment_does_not_come_back_either(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        memory, bus = services.open_memory, "the bus is number 12"
        chains = [[bus, "the bus is number 13"], ["the tram is number 1"]]
        newest = await memory.facts.write(bus, MINE, earlier=[chains])
        (between, _) = await memory.facts.store.replaced_by(newest.id)

        assert await memory.forget(between, MINE)
        assert await memory.forget(newest.id, MINE)
        assert await held(services) == ["the tram is number 1"]


@pytest.mark.parametrize(
    ("bus", "tram"), [("the bus is number 12", "the tram is number 1"), ("公交是12路", "电车是1路")]
)
async def test_a_fact_that_was_replaced_twice_by_the_same_one_holds_again_once(
    tmp_path: Path, bus: str, tram: str
) -> None:
    async with running_services(tmp_path) as services:
        memory, facts = services.open_memory, services.open_memory.facts
        first = await facts.write(tram, MINE)
        newer = await facts.write(bus, MINE, replaces=[first.id])
        again = await facts.write(tram, MINE, lasting=True)
        assert (await facts.write(bus, MINE, replaces=[again.id])).id == newer.id

        assert await memory.forget(newer.id, MINE)

        assert await held(services) == [tram]
        assert await facts.store.profile_text(ME) == f"- {tram}"
        assert await memory.forget(again.id, MINE)
        assert await held(services) == []


async def test_a_misspelt_argument_changes_nothing(tmp_path: Path) -> None:
    """A correction without its `replaces` would stand beside what it corrects."""
    async with running_services(tmp_path) as services:
        (first,) = saved_ids(await keep(services, "演示在星期四 the demo is on Thursday"))
        wrong = remember("the demo is on Friday", replace=[first])
        result = await services.ask(saying("Now the demo is on Friday", wrong))
        assert result["tools"][0]["status"] == "failed"
        assert "`replace` is not an argument" in result["tools"][0]["error"]
        gone = forget("forget the demo", first)
        gone["input"]["dry_run"] = True
        result = await services.ask(saying("forget the demo", gone))
        assert "`dry_run` is not an argument" in result["tools"][0]["error"]
        assert await held(services) == ["演示在星期四 the demo is on Thursday"]


async def test_the_agent_learns_what_its_call_replaced(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        (first,) = saved_ids(await keep(services, LOCKER))
        newer = "my locker is number 14 now"
        kept = await keep(services, newer, replaces=[first, first])
        assert json.loads(await answer_of(services, kept))["replaced"] == [first]
        (second,) = saved_ids(kept)
        again = json.loads(
            await answer_of(services, await keep(services, newer, replaces=[second]))
        )
        assert (again["state"], again["replaced"]) == ("was known already", [])


async def test_a_correction_to_what_is_known_already_is_undone_as_a_whole(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        memory = services.open_memory
        project = await services.create(project_id="gym")
        (known,) = saved_ids(await keep(services, "the demo is on Friday", lasting=True))
        (wrong,) = saved_ids(await keep(services, "the demo is on Thursday", project))
        again = await keep(services, "the demo is on Friday", project)
        assert (saved_ids(again), len(await held(services))) == ([], 2)

        result = await keep(services, "the demo is on Friday", project, replaces=[wrong])

        (saved,) = saved_ids(result)
        assert await held(services) == ["the demo is on Friday"]
        assert await memory.facts.store.replaced_by(saved) == [known, wrong]
        assert await memory.facts.store.profile_text(ME) == "- the demo is on Friday"
        assert await memory.forget(saved, MINE)
        items = await memory.items.newest(MINE, kinds=["fact"], limit=5)
        assert {item.id for item in items} == {known, wrong}
        assert await memory.facts.store.profile_text(ME) == "- the demo is on Friday"


async def test_what_one_fact_had_replaced_together_holds_again_when_its_forgetting_and_it_are_undone(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        facts = services.open_memory.facts
        desk = await facts.write("my desk is by the window", MINE, earlier=["my desk is upstairs"])
        locker = await facts.write(LOCKER, MINE)
        both = "my desk and locker are in the hall"
        (fact_id,) = saved_ids(await keep(services, both, replaces=[desk.id, locker.id]))
        words = "please forget where my desk and locker are"
        result = await services.ask(saying(words, forget(words, fact_id)))
        (forgotten,) = result["memory"]["forgotten"]
        assert forgotten["earlier"] == [[["my desk is upstairs", desk.text], [LOCKER]]]
        back = await facts.write(both, MINE, earlier=forgotten["earlier"])
        assert await services.open_memory.forget(back.id, MINE)
        assert await held(services) == [desk.text, LOCKER]


async def test_what_a_person_corrects_by_hand_keeps_no_word_of_before(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        (fact_id,) = saved_ids(await keep(services, LOCKER))
        await services.open_memory.facts.edit(fact_id, MINE, text="my locker is number 14")
        asked = await services.ask("Which locker is mine?")
        shown = await context_of(services, asked)
        assert "number 14" in shown
        assert "number 12" not in shown


@pytest.mark.parametrize("by_hand", [False, True])
async def test_no_earlier_answer_says_what_was_corrected(tmp_path: Path, *, by_hand: bool) -> None:
    corrected = "my locker is number 14 now"
    async with running_services(tmp_path) as services:
        (fact_id,) = saved_ids(await keep(services, LOCKER))
        answer = {"steps": [{"text": "Yours has the number 12. It is blue."}]}
        services.scripted.answers["Which locker is mine?"] = answer
        told = await services.ask("Which locker is mine?")
        assert told["memory"]["injected"]
        if by_hand:
            await services.ask("Well?")  # the turn before is in the record then
            await services.open_memory.facts.edit(fact_id, MINE, text=corrected)
        else:
            await keep(services, corrected, replaces=[fact_id])
        for name in ("lockers", "my locker"):  # each has the turns recorded again
            asked = await services.ask(f"So which {name}?")
            shown = await context_of(services, asked)
            assert "number 14" in shown
            assert "It is blue" in shown
            assert "number 12" not in shown
            await services.change(told["conversation_id"], title=name)


async def test_an_answer_is_compared_with_the_statements_of_a_correction_alone(
    tmp_path: Path,
) -> None:
    corrected = "my locker is number 14"
    async with running_services(tmp_path) as services:
        told, better = "I keep my key in locker 12", "No, that is wrong, it is 14 now"
        (old,) = saved_ids(await services.ask(saying(told, remember(LOCKER, told))))
        await services.ask(saying(better, remember(corrected, better, replaces=[old])))
        outdated = await services.open_memory.record.store.outdated([old])
    assert outdated == [(LOCKER, corrected)]


@pytest.mark.parametrize(
    ("told", "corrected", "old"),
    [
        (LOCKER, "my locker is number 14 now", "Yours has the number 12."),
        ("我的柜子是十二号", "我的柜子是十四号", "是十二号。"),
    ],
)
@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("is_found", [False, True])
async def test_a_turn_that_is_recorded_after_a_correction_says_nothing_of_before(
    tmp_path: Path, told: str, corrected: str, old: str, *, by_hand: bool, is_found: bool
) -> None:
    """Also one that found the fact itself, and one that left the record and came back."""
    search = {"tool": "mcp__memory__memory_search", "input": {"query": told}}
    asked = "Where do shoes go?" if is_found else told.replace("is", "is it")
    async with running_services(tmp_path, recall_deadline_ms=5000) as services:
        (fact_id,) = saved_ids(await keep(services, told))
        answer = {"text": f"{old} It is blue."}
        services.scripted.answers[asked] = {"steps": [search, answer] if is_found else [answer]}
        result = await services.ask(asked)
        assert bool(result["memory"]["injected"]) is not is_found
        facts = services.open_memory.facts
        if by_hand:
            await facts.edit(fact_id, MINE, text="it is in the cellar")
            await facts.edit(fact_id, MINE, text=corrected)
        else:
            await keep(services, corrected, replaces=[fact_id])
        for is_on in (True, False, True):
            await services.change(result["conversation_id"], memory_enabled=is_on)
            await services.ask("Well?")
            turns = await services.open_memory.items.newest(MINE, kinds=["turn"], limit=50)
            bodies = [turn.body for turn in turns if turn.id == result["turn_id"]]
            assert bodies == [f"{asked}\n→ It is blue."] * is_on
