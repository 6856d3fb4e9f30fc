-- The program knows the kinds; a list of them here would need a new table for each further one.
ALTER TABLE items RENAME TO items_before;
CREATE TABLE items (
  -- the order of writing, and the row of its words; never given twice
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  -- JSON object of the labels that are set
  labels TEXT NOT NULL,
  title TEXT NOT NULL,
  summary TEXT NOT NULL,
  body TEXT NOT NULL,
  source TEXT NOT NULL,
  -- JSON array
  tags TEXT NOT NULL,
  conversation_id TEXT,
  turn_id TEXT,
  thread TEXT,
  position INTEGER,
  occurred_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  revision INTEGER NOT NULL,
  CHECK ((thread IS NULL) = (position IS NULL))
) STRICT;
INSERT INTO items (seq, id, kind, owner_id, labels, title, summary, body, source, tags, conversation_id,
    turn_id, thread, position, occurred_at, updated_at, revision)
  SELECT seq, id, kind, owner_id, labels, title, summary, body, source, tags, conversation_id,
    turn_id, thread, position, occurred_at, updated_at, revision FROM items_before;
-- numbers of deleted items are not given again either
DELETE FROM sqlite_sequence WHERE name = 'items';
UPDATE sqlite_sequence SET name = 'items' WHERE name = 'items_before';
DROP TABLE items_before;
CREATE UNIQUE INDEX items_in_thread ON items (owner_id, thread, position) WHERE thread IS NOT NULL;
CREATE INDEX items_newest ON items (owner_id, occurred_at DESC, seq DESC);
CREATE INDEX items_by_kind ON items (owner_id, kind);
-- What was made of a turn.
CREATE INDEX items_of_turn ON items (turn_id) WHERE turn_id IS NOT NULL;

-- Every item without a project is found in all projects, by the token that says so (as of cases before).
UPDATE item_words SET scope = scope || ' wff7056300b3e7b5148a3' WHERE rowid IN
  (SELECT seq FROM items WHERE kind != 'case' AND json_extract(labels, '$.project_id') IS NULL);
