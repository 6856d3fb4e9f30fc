-- Conversations, their turns (the queue among them), and the events of each turn.
CREATE TABLE conversations (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  title TEXT NOT NULL DEFAULT '',
  model TEXT,
  memory_enabled INTEGER NOT NULL DEFAULT 1,
  case_memory INTEGER NOT NULL DEFAULT 0,
  app_code TEXT,
  environment TEXT,
  -- the agent's session that holds what the model remembers; NULL before the first run
  session_id TEXT,
  -- with it, the next client branches off that session after this message instead of continuing it
  fork_at TEXT,
  created_at TEXT NOT NULL,
  last_activity_at TEXT NOT NULL
) STRICT;
CREATE INDEX conversations_by_activity ON conversations (user_id, last_activity_at DESC, id DESC);
CREATE INDEX conversations_by_session ON conversations (session_id);

CREATE TABLE turns (
  id TEXT PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL,
  -- the order within the conversation
  seq INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'withdrawn')),
  message TEXT NOT NULL,
  created_at TEXT NOT NULL,
  started_at TEXT,
  finished_at TEXT,
  result TEXT,
  -- the session and its last message when the turn ended: where a fork branches off
  session_id TEXT,
  last_entry_id TEXT,
  UNIQUE (conversation_id, seq)
) STRICT;
CREATE INDEX turns_by_session ON turns (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX turns_unfinished ON turns (state) WHERE state IN ('queued', 'running');

CREATE TABLE idempotency (
  user_id TEXT NOT NULL,
  key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  turn_id TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
  PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_turn ON idempotency (turn_id);

CREATE TABLE events (
  -- the order over all conversations; never given twice, also after a deletion
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn_id TEXT NOT NULL,
  n INTEGER NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL,
  UNIQUE (turn_id, n)
) STRICT;
CREATE INDEX events_by_conversation ON events (conversation_id, seq);
