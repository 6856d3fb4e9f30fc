-- What each turn changed in the workspace: a JSON object, with unified diffs. Turns that changed nothing have no row.
CREATE TABLE file_changes (
  turn_id TEXT PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  data TEXT NOT NULL
) STRICT;
