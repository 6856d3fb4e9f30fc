-- What clients of another protocol made here: agents, environments, and what sessions have beside their conversation.
CREATE TABLE client_objects (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('agent', 'environment', 'session')),
  -- JSON
  data TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  archived_at TEXT,
  -- that of a session
  conversation_id TEXT REFERENCES conversations (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX client_objects_listed ON client_objects (user_id, kind, seq);
CREATE INDEX client_objects_by_conversation ON client_objects (conversation_id);
