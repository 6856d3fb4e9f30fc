-- Servers that share this database. A node whose heart has not beaten until `expires_at`, in milliseconds of the database's clock, is dead.
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  -- of one start of its process
  incarnation TEXT NOT NULL,
  expires_at INTEGER NOT NULL,
  -- 1: it takes no more conversations
  draining INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- Which node runs the turns of a conversation. It is dead if `nodes` does not have it with this incarnation.
CREATE TABLE leases (
  conversation_id TEXT PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
  -- NULL: nobody
  node_id TEXT,
  incarnation TEXT,
  -- higher with each owner; an owner's write counts only with its own
  epoch INTEGER NOT NULL,
  -- the last event of earlier owners
  last_seq INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX leases_by_node ON leases (node_id) WHERE node_id IS NOT NULL;

-- The epoch of the owner under which a turn was accepted or ended.
ALTER TABLE turns ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
