-- Where a turn is told to come from, its conversation's title said its first message, which may be forgotten.
UPDATE items SET source = 'conversation ' || conversation_id WHERE kind = 'turn' AND conversation_id IS NOT NULL;

-- A copy of a turn that went with its conversation takes its place; one of a turn that a person forgot does not.
-- Of those from before nobody knows which they are.
ALTER TABLE forgotten_items ADD COLUMN was_deleted INTEGER NOT NULL DEFAULT 0;
-- The turn that was copied first; both may be gone.
CREATE TABLE copied_turns (
  turn_id TEXT PRIMARY KEY,
  copy_of TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX copied_turns_by_first ON copied_turns (copy_of);
