-- The addresses that users have events posted to, and the deliveries. The triggers below store a delivery with its event.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  -- JSON
  events TEXT NOT NULL,
  -- gone: its receiver answered that it is
  state TEXT NOT NULL CHECK (state IN ('on', 'off', 'gone')),
  created_at TEXT NOT NULL,
  -- 0 while the server runs without webhooks
  is_served INTEGER NOT NULL DEFAULT 1
) STRICT;
CREATE INDEX webhooks_listed ON webhooks (user_id, created_at);

CREATE TABLE webhook_deliveries (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  type TEXT NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn_id TEXT,
  approval_id TEXT,
  -- of the event
  created_at TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'dead')),
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  queued_at TEXT NOT NULL,
  due_at TEXT NOT NULL,
  delivered_at TEXT
) STRICT;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at, webhook_id) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (created_at) WHERE status != 'pending';
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (webhook_id, seq);
CREATE INDEX webhook_deliveries_by_conversation ON webhook_deliveries (conversation_id);

-- Which webhooks want which events.
CREATE VIEW webhook_events AS
  SELECT w.user_id, w.id AS webhook_id, e.value AS type FROM webhooks w, json_each(CASE WHEN json_valid(w.events) THEN w.events ELSE '[]' END) e
  WHERE w.state = 'on' AND w.is_served = 1;

-- An event that is stored again, after a power cut, has the same id. Nothing about a webhook keeps an event from being stored.
CREATE TRIGGER created_conversation_delivered AFTER INSERT ON conversations BEGIN
  INSERT OR IGNORE INTO webhook_deliveries (id, webhook_id, type, conversation_id, created_at, queued_at, due_at)
    SELECT 'msg_' || new.id || '_' || webhook_id, webhook_id, type, new.id,
      new.created_at, new.created_at, new.created_at
    FROM webhook_events WHERE user_id = new.user_id AND type = 'conversation.created';
END;
CREATE TRIGGER requested_approval_delivered AFTER INSERT ON approvals BEGIN
  INSERT OR IGNORE INTO webhook_deliveries
    (id, webhook_id, type, conversation_id, turn_id, approval_id, created_at, queued_at, due_at)
    SELECT 'msg_' || new.id || '_' || webhook_id, webhook_id, type, new.conversation_id, new.turn_id, new.id,
      new.created_at, new.created_at, new.created_at
    FROM webhook_events WHERE user_id = new.user_id AND type = 'approval.requested';
END;
CREATE TRIGGER ended_turn_delivered AFTER UPDATE OF state ON turns
WHEN new.state IN ('completed', 'withdrawn') AND old.state NOT IN ('completed', 'withdrawn') BEGIN
  INSERT OR IGNORE INTO webhook_deliveries (id, webhook_id, type, conversation_id, turn_id, created_at, queued_at, due_at)
    SELECT 'msg_' || new.id || '_' || webhook_id, webhook_id, type, new.conversation_id, new.id,
      new.finished_at, new.finished_at, new.finished_at
    FROM webhook_events WHERE user_id = new.user_id AND type = 'turn.completed';
END;
