-- The chronicle of intents, and what waits for a conversation's next prompt.
CREATE TABLE intents (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  key TEXT NOT NULL,
  source_kind TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  conversation_id TEXT,
  turn_id TEXT,
  -- as it is told, and its payload as JSON: masked and bounded both; NULL when forgotten, and where the
  -- policy keeps it out: then the row is there so that it is not taken twice
  text TEXT,
  payload TEXT,
  occurred_at TEXT NOT NULL,
  forgotten_at TEXT
) STRICT;
CREATE INDEX intents_by_owner ON intents (owner_id, seq DESC);
CREATE INDEX intents_by_conversation ON intents (owner_id, conversation_id, seq DESC);
CREATE INDEX intents_by_turn ON intents (turn_id, seq);

CREATE TABLE pending_context (
  intent_id TEXT PRIMARY KEY,
  owner_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  -- empty when it waits no longer
  text TEXT NOT NULL,
  occurred_at TEXT NOT NULL,
  -- as the intent's
  seq INTEGER NOT NULL,
  -- the turn whose prompt it went into; NULL while it waits
  consumed_by TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_context_of ON pending_context (conversation_id, seq);

-- Turns that ended: the work of whoever makes episodes of them.
CREATE TABLE ended_turns (
  turn_id TEXT PRIMARY KEY,
  seq INTEGER NOT NULL,
  remembered_at TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_turns_waiting ON ended_turns (seq) WHERE remembered_at IS NULL;

-- Which fields payloads had: names and types, never values.
CREATE TABLE intent_fields (
  key TEXT NOT NULL,
  field TEXT NOT NULL,
  type TEXT NOT NULL,
  seen INTEGER NOT NULL,
  PRIMARY KEY (key, field, type)
) STRICT, WITHOUT ROWID;
