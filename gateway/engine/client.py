"""A live agent process behind the SDK, owned by one task.

The owner task connects, sends and disconnects; other tasks send it commands, because the SDK's
cancel scopes must not cross tasks (SDK #378, #454, #776). A reader task always drains the messages:
the SDK's inner queue of 100 messages, once full, blocks the permission requests too (SDK #779).
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence

import anyio
import psutil
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    Message,
    MirrorErrorMessage,
    PermissionMode,
    ProcessError,
    StreamEvent,
)

from gateway.engine import processes
from gateway.engine.agent_session import AgentSession
from gateway.engine.hooks import RunHooks
from gateway.engine.private_sdk import MessageParseError, rewind
from gateway.engine.protocol import (
    ClientDead,
    EngineError,
    EngineUnavailable,
    Prompt,
)
from gateway.engine.runs import Interrupt, Rewind, SdkRun, Send
from gateway.engine.session_mirror import SessionMirror, tell_dropped
from gateway.engine.transport import AgentTransport, read_refusal, repair
from gateway.relay.supervisor import RelayProcess

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 60.0
CLOSE_GRACE_S = 6.0
"""An orderly close writes the session's last lines; otherwise they are lost (SDK #584, #625)."""
_INTERRUPT_ACK_S = 5.0
_KILL_AGAIN_S = 0.5
_LAST_WORDS_S = 0.05
"""For what standard error still brings after the process has ended."""
_STDERR_LINES = 200
_MAX_COMMANDS = 16
"""One run and one interrupt wait at a time, so this is never reached."""

_Command = Send | Interrupt | Rewind


class SdkClient:
    """See `AgentClient`. Made and started by `SdkEngine.connect`."""

    def __init__(
        self,
        client_id: str,
        mark: str,
        hooks: RunHooks,
        *,
        relay: RelayProcess | None = None,
        mirror: SessionMirror | None = None,
    ) -> None:
        """Initialise; `mirror` is what the SDK was given to store the session with."""
        self._client_id = client_id
        self._relay = relay
        self._mirror = mirror
        self._mark = mark
        self.session = AgentSession(hooks)
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)
        self._process: psutil.Process | None = None
        self._dead = False
        self._refusal: EngineError | None = None
        self._settled = anyio.Event()
        self._closing = anyio.Event()
        self._gone = anyio.Event()
        self._commands_in: MemoryObjectSendStream[_Command]
        self._commands: MemoryObjectReceiveStream[_Command]
        self._commands_in, self._commands = anyio.create_memory_object_stream[_Command](
            _MAX_COMMANDS
        )

    @property
    def client_id(self) -> str:
        return self._client_id

    @property
    def session_id(self) -> str | None:
        return self.session.id

    @property
    def on_stderr(self) -> Callable[[str], None]:
        """The callback for each line of standard error."""
        return self._stderr.append

    @property
    def pid(self) -> int | None:
        """The agent's process id; None where it was not found."""
        return self._process.pid if self._process else None

    def is_alive(self) -> bool:
        return not self._dead and (self._process is None or processes.is_running(self._process.pid))

    def stderr_tail(self) -> Sequence[str]:
        return tuple(self._stderr)

    def memory_bytes_blocking(self) -> int:
        return processes.memory_bytes_blocking(self._process) if self._process else 0

    async def rewind(self, run: SdkRun) -> bool:
        """Take the session back to before a run that has ended; return whether the agent did so."""
        command = Rewind(run)
        try:
            self._commands_in.send_nowait(command)
            await command.done.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return command.rewound

    async def wait_connected(self) -> None:
        """Wait until a prompt can be taken.

        Raises:
            SessionGone, EngineUnavailable: it could not be connected; nothing is left running.
        """
        await self._settled.wait()
        if self._refusal is not None:
            raise self._refusal

    async def start_run(self, prompt: Prompt) -> SdkRun:
        if not self.is_alive():
            self._dead = True
            raise ClientDead("The agent process has ended.")
        if (
            self.session.run is not None
        ):  # its reader gave up; its later messages must not reach this run
            self._give_up()
            raise ClientDead("The agent is still at work on a run that was given up.")
        if self._mirror is not None and not await self._mirror.begin(prompt.owner):
            self._give_up()
            raise ClientDead("The session went on at another server, or its store does not tell.")
        run = SdkRun(
            self.request_interrupt,
            prompt.calls_before,
            relay=self._relay,
            on_model_call=prompt.on_model_call,
        )
        if self._relay is not None:
            self._relay.offer_tools(self._client_id, has_tools=prompt.has_tools)
            if prompt.context is not None:
                self._relay.hold(self._client_id, is_held=True)
        self.session.begin(run, prompt)
        command = Send(run, prompt)
        try:
            self._commands_in.send_nowait(command)
            await command.done.wait()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            command.failure = "the client is closed"
        except BaseException:
            self._withdraw(command)
            raise
        if command.failure is not None:
            self.session.end(run)
            raise ClientDead("The agent process has ended.", detail=command.failure)
        return run

    def _withdraw(self, command: Send) -> None:
        """Withdraw a prompt whose caller was cancelled; if it was sent already, the client is given
        up.
        """
        command.is_withdrawn = True
        self.session.end(command.run)
        if command.is_taken:
            self._give_up()

    def _give_up(self) -> None:
        self._dead = True
        self._closing.set()

    def request_interrupt(self, run: SdkRun) -> None:
        """Ask the owner task to interrupt a run. Never raises."""
        if run.queue.is_ended or run.interrupt_waits:
            return
        run.interrupt_waits = True
        try:
            self._commands_in.send_nowait(Interrupt(run))
        except (anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            _log.debug("interrupt_not_sent")

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            self._give_up()
            await self._gone.wait()

    async def kill(self) -> None:
        with anyio.CancelScope(shield=True):
            self._dead = True
            while not self._gone.is_set():
                try:
                    await anyio.to_thread.run_sync(processes.kill_client_blocking, self._mark)
                except OSError:
                    _log.exception("agent_not_killed")
                with anyio.move_on_after(
                    _KILL_AGAIN_S
                ):  # the reader learns the exit code meanwhile
                    await self._gone.wait()
                self._closing.set()

    async def serve(self, options: ClaudeAgentOptions) -> None:
        """Own the SDK's client from connect to disconnect. The engine starts this as a task."""
        transport = AgentTransport(options, self.session.deliver, self.session.note_compacting)
        sdk = ClaudeSDKClient(options, transport=transport)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_cancel_at, self._closing, tasks.cancel_scope)
                if await self._connect(sdk):
                    self._process = transport.agent
                    tasks.start_soon(self._read, sdk, transport)
                    self._settled.set()
                    await self._obey(sdk)
                tasks.cancel_scope.cancel()
        finally:
            self._dead = True
            if not self._settled.is_set() and self._refusal is None:
                self._refusal = EngineUnavailable("The agent was closed before it was connected.")
            with anyio.CancelScope(shield=True):
                await self._shut(sdk)

    async def _connect(self, sdk: ClaudeSDKClient) -> bool:
        try:
            with anyio.fail_after(CONNECT_TIMEOUT_S):
                await sdk.connect()
        except Exception as exc:  # noqa: BLE001  the SDK raises bare Exceptions too
            self._refusal = read_refusal(exc, self._stderr)
            return False
        return True

    async def _obey(self, sdk: ClaudeSDKClient) -> None:
        """Carry out commands one after another until the client is closed."""
        async for command in self._commands:
            if isinstance(command, Interrupt):
                await self._interrupt(sdk, command.run)
            elif isinstance(command, Rewind):
                await self._rewind(sdk, command)
            elif not command.is_withdrawn:
                await self._query(sdk, command)

    async def _rewind(self, sdk: ClaudeSDKClient, command: Rewind) -> None:
        try:
            command.rewound = await rewind(sdk, command.run.uuid)
        except Exception:  # noqa: BLE001  the SDK raises bare Exceptions
            _log.info("rewind_failed", exc_info=True)
        finally:
            command.done.set()

    async def _query(self, sdk: ClaudeSDKClient, command: Send) -> None:
        command.is_taken = True
        command.failure = "the client was closed"
        wanted: PermissionMode = "plan" if command.prompt.plan_first else "default"
        try:
            if wanted != self.session.mode:
                await sdk.set_permission_mode(wanted)
                self.session.mode = wanted
            await sdk.query(command.messages())
            command.failure = None
        except (ClaudeSDKError, OSError, anyio.ClosedResourceError) as exc:
            command.failure = str(exc) or type(exc).__name__
            self._dead = True
        finally:
            command.done.set()

    async def _interrupt(self, sdk: ClaudeSDKClient, run: SdkRun) -> None:
        """Interrupt, within a bound: the SDK may never acknowledge it (TS #425)."""
        run.interrupt_waits = False
        if run is not self.session.run:
            return  # it has ended by itself; the next run must not be interrupted
        self.session.interrupt()
        try:
            with anyio.move_on_after(_INTERRUPT_ACK_S):
                await sdk.interrupt()
        except Exception:  # noqa: BLE001  the SDK raises bare Exceptions
            _log.info("interrupt_failed", exc_info=True)

    async def _read(self, sdk: ClaudeSDKClient, transport: AgentTransport) -> None:
        """Drain the agent's messages until it ends, then close the client."""
        exit_code: int | None = None
        try:
            exit_code = await self._drain(sdk, transport)
            self._dead = True
            await anyio.sleep(_LAST_WORDS_S)
        finally:
            self._dead = True
            self.session.lose_run(exit_code, self.stderr_tail())
            self._closing.set()

    async def _drain(self, sdk: ClaudeSDKClient, transport: AgentTransport) -> int | None:
        while True:
            try:
                async for message in sdk.receive_messages():
                    if isinstance(message, MirrorErrorMessage):
                        tell_dropped(message)
                    await self._settle(message)
                    self.session.deliver(message)
                    if isinstance(message, StreamEvent):
                        transport.received = message.event
            except ProcessError as exc:
                return exc.exit_code
            except MessageParseError as exc:  # the stream goes on
                repaired = repair(exc)
                if repaired is None:
                    _log.warning("agent_message_not_understood", exc_info=True)
                else:
                    self.session.deliver(repaired)
                continue
            except ClaudeSDKError:
                _log.warning("agent_line_not_understood", exc_info=True)
                continue
            except Exception:  # noqa: BLE001  this client ends and nothing else
                _log.exception("agent_reader_failed")
            return None

    async def _settle(self, message: Message) -> None:
        """Wait until what a message tells is so: that the relay reported it, or that a command is
        gone.

        If the processes cannot be seen to end, the client ends.
        """
        if self.session.run is not None:
            await self.session.run.await_report(message)
        if self._process is not None and self.session.may_leave_commands(message):
            wait = processes.await_commands_blocking
            await anyio.to_thread.run_sync(wait, self._mark, self._process)

    async def _shut(self, sdk: ClaudeSDKClient) -> None:
        """Disconnect in order within the grace, then end every process of this client."""
        left: Sequence[psutil.Process] = ()
        try:
            if self._process is not None:  # while the parents of its processes are known
                left = await anyio.to_thread.run_sync(processes.tree_blocking, self._process)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._kill_late)
                await sdk.disconnect()
                tasks.cancel_scope.cancel()
        except Exception:  # noqa: BLE001  the processes are ended all the same
            _log.exception("disconnect_failed")
        finally:
            try:
                await anyio.to_thread.run_sync(processes.kill_client_blocking, self._mark, left)
            finally:
                self._refuse_commands()
                self.session.lose_run(None, self.stderr_tail())
                self._settled.set()
                self._gone.set()

    async def _kill_late(self) -> None:
        await anyio.sleep(CLOSE_GRACE_S)
        await anyio.to_thread.run_sync(processes.kill_client_blocking, self._mark)

    def _refuse_commands(self) -> None:
        self._commands_in.close()
        while True:
            try:
                command = self._commands.receive_nowait()
            except (anyio.WouldBlock, anyio.EndOfStream):
                break
            if isinstance(command, Send):
                command.failure = "the client is closed"
            if not isinstance(command, Interrupt):
                command.done.set()
        self._commands.close()


async def _cancel_at(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
