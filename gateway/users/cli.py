"""The commands `user`, `token`, `quota` and `audit`: work on the data directory, beside a running
server or without one.
"""

import argparse
import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TextIO, TypeVar, get_args

import anyio

from gateway.conversations.model import QuotaLimit
from gateway.errors import StartError
from gateway.ids import UserId
from gateway.lost_data import refuse_lost_database_blocking
from gateway.settings import Settings
from gateway.storage import open_storage, where_to_look
from gateway.users.accounts import Accounts
from gateway.users.model import (
    MAX_TOKEN_NAME_CHARS,
    USER_NAME,
    USER_NAME_FORM,
    Act,
    ApiToken,
    AuditEntry,
    Role,
    User,
    act_of_command,
    digest_of,
    new_secret,
    plain_number,
)
from memory.clock import Now, rfc3339
from memory.errors import StoreUnavailable
from memory.items.ids import opaque_id
from policies.explain import printable

T = TypeVar("T")
_MAX_DAYS: Final = 3650
_MAX_LIMIT: Final = 10_000
_NOT_ON: Final = (
    "A server looks for users and tokens of the database with CANDOR_USERS=on, which is not set"
    " here."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    accounts: Accounts
    given: argparse.Namespace
    act: Act
    say: Callable[[str], None]
    database: str
    """The database that is asked, for people."""


def run_users_command(
    command: str, arguments: Sequence[str], settings: Settings, now: Now, out: TextIO
) -> int:
    """Run `user`, `token`, `quota` or `audit`; return the exit code, 2 for wrong arguments. Blocks.

    Raise `StartError` if it cannot be done, or the database cannot be opened.
    """
    try:
        given = _parser_of(command).parse_args(arguments)
    except SystemExit as exc:  # help or a usage error was printed
        return int(exc.code or 0)

    def say(line: str) -> None:
        out.write(f"{printable(line)}\n")

    async def run(accounts: Accounts) -> None:
        call = _Call(
            accounts=accounts,
            given=given,
            act=act_of_command(now()),
            say=say,
            database=_database_of(settings),
        )
        await given.run(call)

    _run_on_accounts(run, settings, now)
    if settings.users == "off" and given.run in _COUNT_WHERE_ON:
        say(_NOT_ON)
    return 0


def holder_blocking(token: str, settings: Settings, now: Now) -> UserId | None:
    """Return the user of a token of the database; None if it signs nobody in now.

    Raises as `run_users_command` does.
    """

    async def find(accounts: Accounts) -> UserId | None:
        user = await accounts.holder(token)
        return None if user is None else user.id

    return _run_on_accounts(find, settings, now)


def _database_of(settings: Settings) -> str:
    if settings.database_url is None:
        return f"the database in {settings.data_dir}"
    return "the PostgreSQL database of CANDOR_DATABASE_URL"


def _run_on_accounts(work: Callable[[Accounts], Awaitable[T]], settings: Settings, now: Now) -> T:
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    if warning := refuse_lost_database_blocking(settings):
        sys.stderr.write(f"{warning}\n")

    async def run() -> T:
        database = await open_storage(settings)
        try:
            return await work(Accounts(database, now=now))
        finally:
            await database.close()

    try:
        return anyio.run(run)
    except StoreUnavailable as exc:
        raise StartError(f"{exc} {where_to_look(settings)}") from exc


async def _add_user(call: _Call) -> None:
    role: Role = "admin" if call.given.admin else "user"
    user = User(id=call.given.user, role=role, created_at=call.act.at)
    if not await call.accounts.users.add(user, call.act):
        raise StartError(f"There is a user {user.id} already.")
    call.say(f"added: {user.id} ({role})")


async def _list_users(call: _Call) -> None:
    users = await call.accounts.users.listed()
    for user in users:
        state = "" if user.disabled_at is None else f"  disabled {_day(user.disabled_at)}"
        call.say(f"{user.id}  {user.role}  since {_day(user.created_at)}{state}")
    if not users:
        call.say(f"There are no users in {call.database}; add one with `candor user add NAME`.")


async def _set_role(call: _Call) -> None:
    user_id, role = call.given.user, call.given.role
    if not await call.accounts.users.set_role(user_id, role, call.act):
        raise _no_user(call, user_id)
    call.say(f"{user_id} is now: {role}")


async def _disable(call: _Call) -> None:
    await _switch(call, is_disabled=True)
    call.say(f"disabled: {call.given.user}; a server with CANDOR_USERS=on refuses this user now.")


async def _enable(call: _Call) -> None:
    await _switch(call, is_disabled=False)
    call.say(f"enabled: {call.given.user}; what was not revoked signs this user in again.")


async def _switch(call: _Call, *, is_disabled: bool) -> None:
    users = call.accounts.users
    if not await users.set_disabled(call.given.user, call.act, is_disabled=is_disabled):
        raise _no_user(call, call.given.user)


async def _add_token(call: _Call) -> None:
    days, secret = call.given.days, new_secret()
    token = ApiToken(
        id=opaque_id("tok"),
        user_id=call.given.user,
        name=call.given.name,
        created_at=call.act.at,
        expires_at=None if days is None else call.act.at + timedelta(days=days),
    )
    if not await call.accounts.tokens.add(token, digest_of(secret), call.act):
        raise _no_user(call, token.user_id)
    user = await call.accounts.users.get(token.user_id)
    if user is not None and user.disabled_at is not None:
        call.say(f"{user.id} is disabled: the token signs in after `candor user enable {user.id}`.")
    until = "" if token.expires_at is None else f", valid until {rfc3339(token.expires_at)}"
    call.say(f"The token {token.id} of {token.user_id}{until}, shown only once:")
    call.say(secret)


async def _list_tokens(call: _Call) -> None:
    tokens = await call.accounts.tokens.listed(call.given.user)
    for token in tokens:
        call.say(
            f"{token.id}  {token.user_id}  {_state(token, call.act.at)}"
            f"  made {_day(token.created_at)}  {token.name}".rstrip()
        )
    if not tokens:
        call.say(f"There are no tokens in {call.database}.")


def _state(token: ApiToken, now: datetime) -> str:
    if token.revoked_at is not None:
        return f"revoked {_day(token.revoked_at)}"
    if token.expires_at is None:
        return "valid"
    return f"{'valid until' if token.is_live(now) else 'expired'} {_day(token.expires_at)}"


async def _revoke_token(call: _Call) -> None:
    if not await call.accounts.tokens.revoke(call.given.token, call.act):
        raise StartError(
            f"There is no valid token {call.given.token} in {call.database}; "
            "see `candor token list`."
        )
    call.say(f"revoked: {call.given.token}")


async def _show_quota(call: _Call) -> None:
    own = await call.accounts.quotas.own(call.given.user)
    for limit in get_args(QuotaLimit):
        told = _limit(own[limit]) if limit in own else "everybody's"
        call.say(f"{limit}: {told}")


async def _set_quota(call: _Call) -> None:
    limit, most = call.given.limit, call.given.most
    if most is not None and limit != "daily_usd" and most != int(most):
        raise StartError(f"{limit} is a whole number.")
    await call.accounts.quotas.set(call.given.user, limit, most, call.act)
    call.say(f"{limit} of {call.given.user}: {_limit(most)}, from the next turn on")


def _limit(most: float | None) -> str:
    return "no limit" if most is None else plain_number(most)


async def _reset_quota(call: _Call) -> None:
    limit = call.given.limit
    await call.accounts.quotas.reset(call.given.user, limit, call.act)
    call.say(f"{limit} of {call.given.user}: everybody's")


async def _show_audit(call: _Call) -> None:
    entries = await call.accounts.audit.page(limit=call.given.limit, actor=call.given.actor)
    for entry in reversed(entries):
        call.say(
            json.dumps(entry.fields(), ensure_ascii=False) if call.given.json else _told(entry)
        )
    if not entries:
        has_actor = call.given.actor is not None
        call.say("There is no entry of this actor." if has_actor else "The audit log is empty.")


def _told(entry: AuditEntry) -> str:
    details = "".join(f"  {name}={value}" for name, value in entry.details.items())
    actor = entry.actor or "unknown"
    return f"{rfc3339(entry.at)}  {actor}  {entry.action}  {entry.subject}{details}"


def _no_user(call: _Call, user_id: UserId) -> StartError:
    return StartError(
        f"There is no user {user_id} in {call.database}; add one with `candor user add {user_id}`."
    )


def _day(moment: datetime) -> str:
    return rfc3339(moment)[:10]


_Parser = argparse.ArgumentParser
Work = Callable[[_Call], Awaitable[None]]
_COUNT_WHERE_ON: Final = frozenset({_add_user, _set_role, _disable, _enable, _add_token})
"""What takes a server with `CANDOR_USERS=on`."""


def _parser_of(command: str) -> _Parser:
    parser = _Parser(prog=f"candor {command}")
    _PARSERS[command](parser)
    return parser


def _user_parser(parser: _Parser) -> None:
    commands = parser.add_subparsers(required=True)

    def add(name: str, run: Work, told: str) -> _Parser:
        one = commands.add_parser(name, help=told)
        one.set_defaults(run=run)
        if name != "list":
            one.add_argument("user", type=_user_name)
        return one

    add("add", _add_user, "add a user").add_argument("--admin", action="store_true")
    add("list", _list_users, "list the users")
    role = add("role", _set_role, "make a user an administrator, or no longer")
    role.add_argument("role", choices=get_args(Role))
    add("disable", _disable, "refuse a user, also one whom a proxy names")
    add("enable", _enable, "admit a user again")


def _token_parser(parser: _Parser) -> None:
    commands = parser.add_subparsers(required=True)
    add = commands.add_parser("add", help="make a token; it is shown once")
    add.add_argument("user", type=_user_name)
    add.add_argument("--name", type=_token_name, default="", help="what it is used by")
    add.add_argument("--days", type=_number_to(_MAX_DAYS), help="how long it is valid")
    add.set_defaults(run=_add_token)
    listed = commands.add_parser("list", help="list tokens, revoked ones too")
    listed.add_argument("user", type=_user_name, nargs="?")
    listed.set_defaults(run=_list_tokens)
    revoke = commands.add_parser("revoke", help="revoke a token, at once and for good")
    revoke.add_argument("token", help="its id, as `candor token list` names it")
    revoke.set_defaults(run=_revoke_token)


def _quota_parser(parser: _Parser) -> None:
    commands = parser.add_subparsers(required=True)
    limits = get_args(QuotaLimit)
    for name, run, told in (
        ("show", _show_quota, "show a user's own limits"),
        ("set", _set_quota, "set a limit of a user"),
        ("reset", _reset_quota, "have everybody's limit count for a user again"),
    ):
        one = commands.add_parser(name, help=told)
        one.set_defaults(run=run)
        one.add_argument("user", type=_user_name)
        if name != "show":
            one.add_argument("limit", choices=limits)
        if name == "set":
            one.add_argument("most", type=_most, help="a number, or `none` for no limit")


def _audit_parser(parser: _Parser) -> None:
    parser.add_argument("--limit", type=_number_to(_MAX_LIMIT), default=100)
    parser.add_argument("--actor", help="of one user alone")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=_show_audit)


_PARSERS: Mapping[str, Callable[[_Parser], None]] = {
    "user": _user_parser,
    "token": _token_parser,
    "quota": _quota_parser,
    "audit": _audit_parser,
}


def _user_name(text: str) -> UserId:
    if USER_NAME.fullmatch(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not {USER_NAME_FORM}")
    return UserId(text)


def _token_name(text: str) -> str:
    if not text.isprintable() or len(text) > MAX_TOKEN_NAME_CHARS:
        raise argparse.ArgumentTypeError(
            f"a name has at most {MAX_TOKEN_NAME_CHARS} characters, on one line"
        )
    return text


def _most(text: str) -> float | None:
    if text == "none":
        return None
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither a number of at most nine digits and six decimals nor `none`"
        )
    return float(text)


def _number_to(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not (text.isascii() and text.isdigit() and 0 < int(text[:9]) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number of 1 to {most}")
        return int(text)

    return number
