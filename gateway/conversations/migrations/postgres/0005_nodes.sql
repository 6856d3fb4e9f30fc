-- Where other nodes reach one, what they show it, and its process.
ALTER TABLE nodes ADD COLUMN url TEXT COLLATE "C";
ALTER TABLE nodes ADD COLUMN secret TEXT COLLATE "C";
ALTER TABLE nodes ADD COLUMN process TEXT COLLATE "C";
-- Of workspaces that several nodes use: the node whose calls may change something.
CREATE TABLE workspace_locks (
  name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
  node_id TEXT COLLATE "C" NOT NULL,
  incarnation TEXT COLLATE "C" NOT NULL
);
