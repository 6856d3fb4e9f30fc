-- Work that one node does for all nodes.
CREATE TABLE duties (
  name TEXT PRIMARY KEY,
  node_id TEXT NOT NULL,
  incarnation TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- JSON: what clients are shown of an approval while its run waits for the answer.
ALTER TABLE approvals ADD COLUMN question TEXT;

-- Rises with each change, so that two programs do not overwrite each other's.
ALTER TABLE schedules ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
