-- expand
-- Conversations that have a git work tree, also while it is not there. They outlive their conversation
-- until the tree is removed.
CREATE TABLE work_trees (
  conversation_id TEXT COLLATE "C" PRIMARY KEY,
  owner TEXT COLLATE "C" NOT NULL,
  made_at TEXT COLLATE "C" NOT NULL,
  merging TEXT COLLATE "C"
);

CREATE INDEX work_trees_by_owner ON work_trees (owner);
CREATE INDEX work_trees_merging ON work_trees (owner) WHERE merging IS NOT NULL;
