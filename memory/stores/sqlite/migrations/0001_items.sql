-- Items and their words: what search finds.
CREATE TABLE items (
  -- the order of writing, and the row of its words; never given twice
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK (kind IN ('note', 'episode', 'case')),
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
CREATE UNIQUE INDEX items_in_thread ON items (owner_id, thread, position) WHERE thread IS NOT NULL;
CREATE INDEX items_newest ON items (owner_id, occurred_at DESC, seq DESC);

-- The words of an item, segmented already. `scope` holds a token for its owner, its kind and each label,
-- so that a search leaves everybody else's rows before it ranks; `characters` the single ones of Chinese.
CREATE VIRTUAL TABLE item_words USING fts5 (
  title, body, before, after, characters, scope,
  tokenize = 'porter unicode61 remove_diacritics 2'
);
