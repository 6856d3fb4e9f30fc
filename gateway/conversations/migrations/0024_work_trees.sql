-- Conversations that have a git work tree, also while it is not there. They outlive their conversation
-- until the tree is removed.
CREATE TABLE work_trees (
  conversation_id TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  made_at TEXT NOT NULL,
  merging TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX work_trees_by_owner ON work_trees (owner);
CREATE INDEX work_trees_merging ON work_trees (owner) WHERE merging IS NOT NULL;
