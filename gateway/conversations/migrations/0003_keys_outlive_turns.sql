-- A key outlives its turn for a while: what was sent under it must not run anew because it was deleted.
CREATE TABLE outliving (
  user_id TEXT NOT NULL,
  key TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  turn_id TEXT NOT NULL,
  -- when its turn was deleted; NULL: it is there
  deleted_at TEXT,
  PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;
INSERT INTO outliving (user_id, key, request_hash, turn_id)
  SELECT user_id, key, request_hash, turn_id FROM idempotency;
DROP TABLE idempotency;
ALTER TABLE outliving RENAME TO idempotency;
CREATE INDEX idempotency_by_turn ON idempotency (turn_id);
CREATE INDEX idempotency_deleted ON idempotency (deleted_at) WHERE deleted_at IS NOT NULL;
