-- What was forgotten, by its id alone: a turn that ran meanwhile and was shown it must not write it down anew.
CREATE TABLE forgotten_items (
  item_id TEXT PRIMARY KEY,
  forgotten_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- Who wants a note forgotten: written before its file goes, so that a crash in between leaves nothing undone.
ALTER TABLE note_files ADD COLUMN forgotten_by TEXT;
