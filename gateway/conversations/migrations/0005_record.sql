-- The scope of what a conversation recalls and of what is remembered of it.
ALTER TABLE conversations ADD COLUMN project_id TEXT;

-- Of a turn that was copied into a fork: the turn that was copied first.
ALTER TABLE turns ADD COLUMN copy_of TEXT;
-- 1: memory was off when it ended, so that it is never found from another conversation.
ALTER TABLE turns ADD COLUMN kept_out INTEGER NOT NULL DEFAULT 0;
UPDATE turns SET copy_of = (
  SELECT original.id FROM conversations fork
    JOIN conversations source ON source.id = fork.root_id OR source.root_id = fork.root_id
    JOIN turns original ON original.conversation_id = source.id AND original.seq = turns.seq
  WHERE fork.id = turns.conversation_id AND original.rowid < turns.rowid
    AND original.created_at = turns.created_at AND original.message = turns.message
  ORDER BY original.rowid LIMIT 1
) WHERE conversation_id IN (SELECT id FROM conversations WHERE root_id IS NOT NULL);
CREATE INDEX turns_copied ON turns (copy_of) WHERE copy_of IS NOT NULL;
-- Which turns the agent's session holds, without reading their results.
CREATE INDEX turns_in_session ON turns (conversation_id, state, session_id, seq, id, copy_of);

-- Turns whose item in memory may not be what they are now; `gateway/turns/record.py` brings it up to date.
CREATE TABLE record_changes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  turn_id TEXT NOT NULL
) STRICT;
CREATE TRIGGER ended_turn_changed AFTER UPDATE OF state ON turns
WHEN new.state = 'completed' AND old.state != 'completed' BEGIN
  UPDATE turns SET kept_out = 1 WHERE id = new.id AND EXISTS
    (SELECT 1 FROM conversations c WHERE c.id = new.conversation_id AND c.memory_enabled = 0);
  INSERT INTO record_changes (turn_id) VALUES (new.id);
END;
-- a copy takes the place of what it was made of
CREATE TRIGGER deleted_turn_changed AFTER DELETE ON turns WHEN old.state = 'completed' BEGIN
  INSERT INTO record_changes (turn_id) VALUES (old.id);
  INSERT INTO record_changes (turn_id)
    SELECT id FROM turns WHERE copy_of = coalesce(old.copy_of, old.id);
END;
CREATE TRIGGER changed_conversation_changed
AFTER UPDATE OF title, memory_enabled, project_id ON conversations
WHEN new.title != old.title OR new.memory_enabled != old.memory_enabled
  OR new.project_id IS NOT old.project_id BEGIN
  INSERT INTO record_changes (turn_id)
    SELECT id FROM turns WHERE conversation_id = new.id AND state = 'completed';
END;
