-- What a person is asked about a call. Stored before it is shown, so that it outlives the run that asked.
CREATE TABLE approvals (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn_id TEXT NOT NULL,
  call_index INTEGER NOT NULL,
  tool_use_id TEXT NOT NULL,
  name TEXT NOT NULL,
  summary TEXT NOT NULL,
  language TEXT NOT NULL,
  -- JSON: what would run, and where known secrets are hidden in it; emptied when it is no longer needed
  input TEXT NOT NULL,
  hidden TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'withdrawn', 'lost')),
  decision TEXT CHECK (decision IN ('allow', 'deny')),
  message TEXT NOT NULL,
  answers TEXT,
  created_at TEXT NOT NULL,
  ended_at TEXT
) STRICT;
CREATE INDEX approvals_listed ON approvals (user_id, created_at) WHERE state IN ('open', 'lost');
CREATE INDEX approvals_by_conversation ON approvals (conversation_id, state);
CREATE INDEX approvals_by_turn ON approvals (turn_id);

-- The approval whose answer started the turn.
ALTER TABLE turns ADD COLUMN approval_id TEXT;

CREATE TRIGGER ended_approvals_emptied AFTER UPDATE OF state ON turns
WHEN new.state = 'completed' AND old.state != 'completed' BEGIN
  UPDATE approvals SET input = '{}', hidden = '[]'
    WHERE state != 'open' AND (turn_id = new.id OR id = new.approval_id);
END;
-- A run that was taken back before it began has used up nothing.
CREATE TRIGGER approval_of_run_taken_back AFTER UPDATE OF state ON turns
WHEN new.state = 'withdrawn' AND old.state != 'withdrawn' AND new.approval_id IS NOT NULL BEGIN
  UPDATE approvals SET state = 'open', decision = NULL, message = '', answers = NULL, ended_at = NULL
    WHERE id = new.approval_id AND state = 'answered';
END;
