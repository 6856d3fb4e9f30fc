-- Which turn answered which history of a client that names no conversation of ours.
CREATE TABLE client_turns (
  id INTEGER PRIMARY KEY,
  user_id TEXT NOT NULL,
  -- the client's own name of the conversation; empty if it gave none
  thread TEXT NOT NULL,
  -- a hash of the person's messages up to and with that of the turn
  history TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX client_turns_found ON client_turns (user_id, thread, history);
CREATE INDEX client_turns_by_conversation ON client_turns (conversation_id);
