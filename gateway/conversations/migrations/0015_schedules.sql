-- Messages that are sent at the times of a cron expression.
CREATE TABLE schedules (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL,
  name TEXT NOT NULL,
  cron TEXT NOT NULL,
  time_zone TEXT NOT NULL,
  message TEXT NOT NULL,
  -- NULL: each run starts a conversation
  conversation_id TEXT,
  project_id TEXT,
  enabled INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  -- the first due time without a run; NULL: off
  due_at TEXT,
  last_due_at TEXT,
  last_at TEXT,
  last_turn_id TEXT,
  last_missed INTEGER NOT NULL,
  -- JSON: why it does not run now
  problem TEXT
) STRICT;
CREATE INDEX schedules_listed ON schedules (user_id, seq);
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_by_conversation ON schedules (conversation_id) WHERE conversation_id IS NOT NULL;

-- JSON: the schedule that sent the turn's message.
ALTER TABLE turns ADD COLUMN schedule TEXT;

CREATE TRIGGER schedules_without_conversation AFTER DELETE ON conversations BEGIN
  UPDATE schedules SET enabled = 0, due_at = NULL, problem = json_object(
    'code', 'conversation_deleted',
    'message', 'Its conversation was deleted, so it is switched off. Choose another one to switch it on again.',
    'at', strftime('%Y-%m-%dT%H:%M:%fZ')
  ) WHERE conversation_id = old.id;
END;
