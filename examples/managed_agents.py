"""Claude Managed Agents with Anthropic's client: at the vendor's service or at Candor, by base URL alone.

    ANTHROPIC_API_KEY=sk-ant-… python managed_agents.py [MESSAGE]
    ANTHROPIC_API_KEY=any ANTHROPIC_BASE_URL=http://127.0.0.1:8000/anthropic python managed_agents.py [MESSAGE]

At Candor the key is your token, if the server wants one.
"""

import sys
from typing import Any

from anthropic import Anthropic

MODEL = "claude-sonnet-4-5"
ASKING = {"permission_policy": {"type": "always_ask"}}


def main() -> None:
    """Send an agent a message, and allow each call that waits for a person."""
    api: Any = Anthropic().beta
    agent = api.agents.create(
        name="Helper",
        model=MODEL,
        tools=[{"type": "agent_toolset_20260401", "default_config": ASKING}],
    )
    place = api.environments.create(name="helper", config={"type": "cloud"})
    session = api.sessions.create(agent=agent.id, environment_id=place.id)
    events = api.sessions.events
    with events.stream(session.id) as stream:  # first, so that it misses nothing
        text = " ".join(sys.argv[1:]) or "list the files"
        message = {"type": "user.message", "content": [{"type": "text", "text": text}]}
        events.send(session.id, events=[message])
        calls = {}
        for event in stream:
            match event.type:
                case "agent.message":
                    print("".join(part.text for part in event.content))
                case "agent.tool_use":
                    calls[event.id] = f"{event.name} {event.input}"
                case "session.error":
                    print(f"[{event.error.message}]")
                case "session.status_idle" if event.stop_reason.type == "requires_action":
                    for call in event.stop_reason.event_ids:
                        print(f"[allowing: {calls[call]}]")
                        answer = {"type": "user.tool_confirmation", "tool_use_id": call}
                        events.send(session.id, events=[{**answer, "result": "allow"}])
                case "session.status_idle":
                    print(f"[{event.stop_reason.type}]")
                    return
                case _:
                    pass


if __name__ == "__main__":
    main()
