"""The command line: `candor`, and `python app.py` in a checkout. It serves unless a sub-command is
named.

The only module that reads the environment and the `.env` file. Relative paths and `.env` belong to
one directory: the current one for `candor`, the checkout for `app.py`.
"""

import argparse
import contextlib
import gc
import io
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from dotenv import dotenv_values
from dotenv.parser import parse_stream

from gateway.errors import SettingsError, StartError
from gateway.settings import PREFIX, Settings
from gateway.version import COMMAND, VERSION

EXIT_CANNOT_START = 1
EXIT_USAGE = 2
EXIT_FAILED = 70
EXIT_INTERRUPTED = 130

_STANDARD_ERROR = 2
_OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""Importing makes 200 000 objects that last; by default the collector visits them for a fifth of a
start."""
_WITH_OWN_ARGUMENTS = {"acp", "audit", "db", "logs", "mcp", "memory", "policy", "quota", "user"}
"""Commands that parse their own arguments, options included."""
_TOKEN_COMMANDS = {"add", "list", "revoke"}
"""After `token`: of tokens in the database; else it names a user of the tokens file."""


def run(home: Path | None = None) -> NoReturn:
    """Run the process's own arguments and exit; see `main`."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    code = main(home=home)
    gc.freeze()  # everything is closed: the interpreter's last collections only delay the exit
    gc.disable()
    sys.exit(code)


def main(arguments: Sequence[str] | None = None, *, home: Path | None = None) -> int:
    """Run a sub-command and return the exit code.

    `home` is where `.env` is read and relative paths start; default: the current directory.
    """
    _open_missing_streams()
    code = 0
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments), home)
        if not sys.stdout.closed:  # a bridge closes it when its client has left
            sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    except OSError as exc:
        _discard_output()
        what = exc.filename or "the output"
        print(f"candor: {what} cannot be used ({exc.strerror}).", file=sys.stderr)
        code = EXIT_CANNOT_START
    return code


def _run(words: list[str], home: Path | None) -> int:
    try:
        options = _parse(words)
    except SystemExit as exc:  # help, the version or a usage error was printed
        return int(exc.code or 0)
    home = Path.cwd() if home is None else home
    try:
        environ = _environment(home / ".env")
        settings = _absolute(Settings.from_environ(environ), home)
        return int(options.run(options, settings, environ))
    except StartError as exc:
        print(f"candor: {exc}", file=sys.stderr)
        return EXIT_USAGE if isinstance(exc, SettingsError) else EXIT_CANNOT_START
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _open_missing_streams() -> None:
    """Open the null device for each closed standard stream, so that no other file
    gets its number.
    """
    while (null := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        pass
    os.close(null)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8")
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8")


def _discard_output() -> None:
    """Send the rest of the output to the null device: its reader left (`| head`), or the disk is
    full.
    """
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _environment(file: Path) -> Mapping[str, str]:
    """Add the variables of a `.env` file that the environment lacks; the agent inherits them.

    Raise `StartError` if the file cannot be read, or a setting in it: left out, it might be the one
    that asks a person. Other lines are other programs' and may be anything.
    """
    try:
        # a directory that may not be searched has none, like one of another user who runs a command
        text = file.read_text("utf-8-sig") if os.access(file, os.F_OK) and not file.is_dir() else ""
        if number := _unclear_line(text):
            raise SettingsError(
                f"{file}, line {number}: it is not NAME=value, or a quotation mark is not closed;"
                " correct or remove it."
            )
        for name, value in dotenv_values(stream=io.StringIO(text)).items():
            if value is not None:
                os.environ.setdefault(name, value)
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8 text"
        raise SettingsError(
            f"{file} cannot be read ({reason}); correct it or move it away."
        ) from exc
    return os.environ


def _unclear_line(text: str) -> int | None:
    """Return the number of the first line that names a setting and cannot be read, if any."""
    for binding in parse_stream(io.StringIO(text)):
        whole = binding.original.string  # with the blank lines before it
        is_bare = binding.value is None and (binding.key or "").startswith(PREFIX)
        if is_bare or (binding.error and PREFIX in whole):
            blank = whole[: len(whole) - len(whole.lstrip())]
            return binding.original.line + blank.count("\n")
    return None


def _parse(words: list[str]) -> argparse.Namespace:
    has_own = bool(words) and words[0] in _WITH_OWN_ARGUMENTS
    if words[:1] == ["token"] and words[1:2] and words[1] in _TOKEN_COMMANDS:
        return argparse.Namespace(run=partial(_users, "token"), rest=words[1:])
    options = _parser().parse_args(words[:1] if has_own else words)
    options.rest = words[1:] if has_own else []
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Candor, a chat-agent gateway.")
    parser.add_argument("--version", action="version", version=f"candor {VERSION}")
    parser.set_defaults(run=_serve)
    commands = parser.add_subparsers(title="commands")
    for name, run_it, told in (
        ("serve", _serve, "serve (the default)"),
        ("demo", _serve_demo, "serve on the built-in demo model"),
        ("doctor", _doctor, "check the set-up and print the settings"),
        ("logs", _logs, "list, show and follow the turns' logs"),
        ("policy", _policy, "try the policy on calls, list its rules"),
        ("memory", _memory, "search memory, write to it, repair it"),
        ("db", _db, "check, migrate and copy the databases"),
        ("user", partial(_users, "user"), "add, list, disable and enable users; set their roles"),
        ("quota", partial(_users, "quota"), "show and change what single users may use"),
        ("audit", partial(_users, "audit"), "show who did what: users, tokens, deletions"),
        ("acp", _acp, "serve an editor over pipes"),
        (
            "mcp",
            _mcp,
            "serve memory to an MCP host over pipes; list and accept tools of MCP servers",
        ),
    ):
        commands.add_parser(name, help=told).set_defaults(run=run_it)
    replay = commands.add_parser("replay", help="serve the model's replies of a turn from its log")
    replay.add_argument("turn_id", help="the turn, as candor logs list names it")
    replay.set_defaults(run=_replay)
    told = "add, list or revoke tokens of the database; NAME: make one in the tokens file"
    usage = f"{COMMAND} token [-h] {{add,list,revoke}} ...\n       {COMMAND} token [-h] name"
    token = commands.add_parser("token", help=told, description=told, usage=usage)
    token.add_argument("name", help="whose it is: 1 to 64 letters, digits, dots, hyphens, _")
    token.set_defaults(run=_token)
    return parser


def _serve(_options: argparse.Namespace, settings: Settings, environ: Mapping[str, str]) -> int:
    import anyio  # noqa: PLC0415  what does not serve starts without it

    from gateway.agent_setup import AgentPlan  # noqa: PLC0415  logs and doctor start without the SDK
    from gateway.credentials import secrets_of  # noqa: PLC0415
    from gateway.observability.logging import configure_logging  # noqa: PLC0415
    from gateway.serve import serve  # noqa: PLC0415
    from policies.secrets import mask_secrets  # noqa: PLC0415

    def announce(address: str, plan: AgentPlan) -> None:
        with contextlib.suppress(OSError):  # nobody reads the output; serve anyway
            if plan.demo:
                print("Candor runs on its built-in demo model: the answers are scripted.")
                print("Set ANTHROPIC_API_KEY (also in .env) to talk to a real one.")
            elif plan.credential.kind == "none":
                print(
                    "Candor found no credential for a model, and CANDOR_DEMO=off forbids its own."
                )
                print("Set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL (also in .env).")
            else:
                print(f"Candor talks to the model of {plan.credential.found}.")
            print(f"Open {address}", flush=True)

    mask = partial(mask_secrets, known=tuple(secrets_of(environ)))
    configure_logging(json=not sys.stderr.isatty(), mask=mask)
    # its "Started server process" repeats what our log says
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    try:
        anyio.run(lambda: serve(settings, environ, announce=announce))
    except StartError:
        raise
    except Exception:  # the last resort: the log has the details
        logging.getLogger(__name__).critical("server_failed", exc_info=True)
        print("candor: The server failed; its log above says why.", file=sys.stderr)
        return EXIT_FAILED
    return 0


def _serve_demo(options: argparse.Namespace, settings: Settings, environ: Mapping[str, str]) -> int:
    return _serve(options, replace(settings, demo="on"), environ)


def _doctor(_options: argparse.Namespace, settings: Settings, environ: Mapping[str, str]) -> int:
    from gateway.doctor import examine  # noqa: PLC0415

    return examine(settings, environ, out=sys.stdout)


def _logs(options: argparse.Namespace, settings: Settings, _environ: Mapping[str, str]) -> int:
    from gateway.journal.cli import run_logs_command  # noqa: PLC0415

    return run_logs_command(options.rest, log_dir=settings.log_dir, program=COMMAND, out=sys.stdout)


def _replay(options: argparse.Namespace, settings: Settings, _environ: Mapping[str, str]) -> int:
    from gateway.replay import run_replay  # noqa: PLC0415

    return run_replay(options.turn_id, settings.log_dir, sys.stdout)


def _policy(options: argparse.Namespace, settings: Settings, _environ: Mapping[str, str]) -> int:
    from gateway.workspaces import workspace_of_user_blocking  # noqa: PLC0415
    from policies.cli import PolicyCommand  # noqa: PLC0415

    command = PolicyCommand(
        workspace=settings.workspace,
        policy_file=settings.policy_file,
        private=tuple(
            path
            for path in (settings.data_dir, settings.log_dir, settings.tokens_file)
            if path is not None
        ),
        program=COMMAND,
        sandboxed_shell=settings.shell == "sandboxed",
        each_user=settings.workspaces == "per_user",
        place_of=partial(workspace_of_user_blocking, settings),
        trust=lambda yes, user: _trust(_settings_of(settings, user), yes=yes),
    )
    source = sys.stdin.buffer if sys.stdin else io.BytesIO()
    return command.run(options.rest, source=source, out=sys.stdout)


def _memory(options: argparse.Namespace, settings: Settings, environ: Mapping[str, str]) -> int:
    from gateway.credentials import secrets_of  # noqa: PLC0415
    from gateway.http.memory_bodies import read_episode  # noqa: PLC0415
    from gateway.memory import memory_command  # noqa: PLC0415

    source = sys.stdin.buffer if sys.stdin else io.BytesIO()
    command = memory_command(settings, tuple(secrets_of(environ)), read_episode, COMMAND)
    return command.run(options.rest, source=source, out=sys.stdout)


def _acp(options: argparse.Namespace, settings: Settings, _environ: Mapping[str, str]) -> int:
    from gateway.doors.acp.bridge import run_bridge_command  # noqa: PLC0415
    from gateway.http.hosts import address_of  # noqa: PLC0415

    address = address_of(settings.host, settings.port)
    return run_bridge_command(options.rest, address, partial(_folder_of, settings), COMMAND)


def _folder_of(settings: Settings, token: str | None) -> Path:
    """Return the workspace of whoever has a token. Raise `StartError` if it is each user's own and
    the token is nobody's.
    """
    from gateway.http.tokens import load_tokens  # noqa: PLC0415
    from gateway.workspaces import load_workspaces_blocking  # noqa: PLC0415

    workspaces = load_workspaces_blocking(settings)
    if not workspaces.is_per_user:
        return settings.workspace
    tokens = load_tokens(settings.tokens_file) if settings.tokens_file is not None else None
    user_id = tokens.user_of(token or "") if tokens is not None else None
    if user_id is None and token and settings.users == "on":
        from gateway.users.cli import holder_blocking  # noqa: PLC0415
        from memory.clock import utc_now  # noqa: PLC0415

        user_id = holder_blocking(token, settings, utc_now)
    if user_id is None:
        raise StartError(
            "Each user has a workspace: give a token of the server's with --token-file."
        )
    return workspaces.of(user_id).root


def _mcp(options: argparse.Namespace, settings: Settings, _environ: Mapping[str, str]) -> int:
    if not options.rest or options.rest[0].startswith("-"):
        from gateway.doors.mcp.bridge import run_bridge_command  # noqa: PLC0415
        from gateway.http.hosts import address_of  # noqa: PLC0415

        address = address_of(settings.host, settings.port)
        return run_bridge_command(options.rest, address, COMMAND)
    from gateway.mcp_servers.accepted_tools import MCP_FOLDER  # noqa: PLC0415
    from gateway.mcp_servers.cli import run_mcp_command  # noqa: PLC0415
    from gateway.shared_approvals import (  # noqa: PLC0415
        accept_tools_blocking,
        copy_approvals_blocking,
    )

    copy_approvals_blocking(settings)
    share = None if settings.database_url is None else partial(accept_tools_blocking, settings)
    folder = settings.data_dir / MCP_FOLDER
    return run_mcp_command(options.rest, folder, COMMAND, sys.stdout, share)


def _settings_of(settings: Settings, user: str | None) -> Settings:
    """Return the settings with the workspace of a user. Raise `StartError` if it is not named, or
    there is one for all.
    """
    from gateway.workspaces import workspace_of_user_blocking  # noqa: PLC0415

    if user is not None:
        return replace(settings, workspace=workspace_of_user_blocking(settings, user).root)
    if settings.workspaces == "per_user":
        raise StartError("Each user has a workspace: name one with --user.")
    return settings


def _trust(settings: Settings, *, yes: bool) -> int:
    """Show what the workspace's own configuration would do, and approve it on confirmation."""
    from gateway.shared_approvals import (  # noqa: PLC0415
        approve_files_blocking,
        copy_approvals_blocking,
    )
    from gateway.trust import review_blocking, trust_blocking  # noqa: PLC0415
    from policies.explain import printable  # noqa: PLC0415

    copy_approvals_blocking(settings)
    report = review_blocking(settings)
    for line in report.lines():
        print(printable(line))
    if report.is_trusted and not report.waiting:
        print(f"Nothing in {printable(str(report.workspace))} waits for approval.")
        return 0
    if not report.is_approvable and not report.waiting:
        files = printable(report.names)
        print(f"No approval helps: no agent starts there while this stands: {files}.")
        return EXIT_CANNOT_START
    if not yes and not _says_yes("Approve this, exactly as it stands now? [y/N] "):
        means = "Agents go without it" if report.is_trusted else "No agent starts there"
        print(f"Nothing was approved. {means} while this stands.")
        return 0 if report.is_trusted else EXIT_CANNOT_START
    if settings.database_url is None:
        left = trust_blocking(settings, report)
    else:
        approve_files_blocking(settings, report)
        left = review_blocking(settings)
    if left.is_trusted:
        print("Approved as it stands; any change to it will be asked about again.")
        return 0
    files = printable(left.names)
    print(f"The rest is approved, but no agent starts there while this stands: {files}.")
    return EXIT_CANNOT_START


def _says_yes(question: str) -> bool:
    if sys.stdin is None:
        return False
    try:
        return input(question).strip().casefold() in {"y", "yes", "是"}
    except (EOFError, UnicodeDecodeError):
        print()
        return False


def _users(
    command: str, options: argparse.Namespace, settings: Settings, _environ: Mapping[str, str]
) -> int:
    from gateway.users.cli import run_users_command  # noqa: PLC0415
    from memory.clock import utc_now  # noqa: PLC0415

    return run_users_command(command, options.rest, settings, utc_now, sys.stdout)


def _db(options: argparse.Namespace, settings: Settings, _environ: Mapping[str, str]) -> int:
    from gateway.database.cli import run_db_command  # noqa: PLC0415

    return run_db_command(options.rest, settings, COMMAND, sys.stdout)


def _token(options: argparse.Namespace, settings: Settings, _environ: Mapping[str, str]) -> int:
    from gateway.http.tokens import add_line_blocking, make_token  # noqa: PLC0415

    if settings.tokens_file is None:
        raise StartError(
            "Set CANDOR_TOKENS_FILE to the file that holds the tokens, or make one in the database"
            f" with `{COMMAND} token add NAME`."
        )
    token, line = make_token(options.name)
    try:
        add_line_blocking(settings.tokens_file, options.name, line)
    except OSError as exc:
        raise StartError(
            f"The tokens file {settings.tokens_file} cannot be written ({exc.strerror})."
        ) from exc
    print(f"The token of {options.name}, shown only once; a running server reads it in seconds:")
    print(token)
    return 0


def _absolute(settings: Settings, home: Path) -> Settings:
    """Resolve relative paths against `home`."""
    return replace(
        settings,
        workspace=home / settings.workspace,
        data_dir=home / settings.data_dir,
        log_dir=home / settings.log_dir,
        tokens_file=settings.tokens_file and home / settings.tokens_file,
        projects_file=settings.projects_file and home / settings.projects_file,
        policy_file=settings.policy_file and home / settings.policy_file,
        mcp_file=settings.mcp_file and home / settings.mcp_file,
        shell_secrets_file=settings.shell_secrets_file and home / settings.shell_secrets_file,
        memory_policy_file=settings.memory_policy_file and home / settings.memory_policy_file,
    )
