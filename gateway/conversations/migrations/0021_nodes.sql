-- Where other nodes reach one, what they show it, and its process.
ALTER TABLE nodes ADD COLUMN url TEXT;
ALTER TABLE nodes ADD COLUMN secret TEXT;
ALTER TABLE nodes ADD COLUMN process TEXT;
-- Of workspaces that several nodes use: the node whose calls may change something.
CREATE TABLE workspace_locks (
  name TEXT NOT NULL PRIMARY KEY,
  node_id TEXT NOT NULL,
  incarnation TEXT NOT NULL
) STRICT, WITHOUT ROWID;
