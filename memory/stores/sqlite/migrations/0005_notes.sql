-- Which note files are indexed, in which state.
CREATE TABLE note_files (
  name TEXT PRIMARY KEY,
  mtime_ns INTEGER NOT NULL,
  size INTEGER NOT NULL,
  digest TEXT NOT NULL,
  -- JSON array of the ids of its items
  item_ids TEXT NOT NULL
) STRICT, WITHOUT ROWID;
