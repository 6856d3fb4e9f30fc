-- expand
-- As SQLite's `0026_copied_turns`.
UPDATE items SET source = 'conversation ' || conversation_id WHERE kind = 'turn' AND conversation_id IS NOT NULL;
ALTER TABLE forgotten_items ADD COLUMN was_deleted INTEGER NOT NULL DEFAULT 0;
CREATE TABLE copied_turns (
  turn_id TEXT COLLATE "C" PRIMARY KEY,
  copy_of TEXT COLLATE "C" NOT NULL
);
CREATE INDEX copied_turns_by_first ON copied_turns (copy_of);
