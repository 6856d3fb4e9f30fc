-- What the migrations 0001 to 0017 of SQLite make, for PostgreSQL: the same tables and columns. Why a column is there, those
-- files say. Other than there:
-- - Texts are compared by their bytes, whatever the database's own order is.
-- - `rowid` numbers the rows of a table in the order of their insertion, as each table of SQLite has it.
-- - The search index holds the folded texts and their grams; the stores write it, since no function of Python runs here.

CREATE TABLE conversations (
  id TEXT COLLATE "C" PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL,
  title TEXT NOT NULL DEFAULT '',
  model TEXT,
  memory_enabled INTEGER NOT NULL DEFAULT 1,
  case_memory INTEGER NOT NULL DEFAULT 0,
  app_code TEXT,
  environment TEXT,
  session_id TEXT COLLATE "C",
  fork_at TEXT,
  created_at TEXT COLLATE "C" NOT NULL,
  last_activity_at TEXT COLLATE "C" NOT NULL,
  root_id TEXT COLLATE "C",
  turns INTEGER NOT NULL DEFAULT 0,
  project_id TEXT,
  pinned INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX conversations_by_activity ON conversations (user_id, last_activity_at DESC, id DESC);
CREATE INDEX conversations_by_session ON conversations (session_id);
CREATE INDEX conversations_by_line ON conversations (coalesce(root_id, id));
CREATE INDEX conversations_pinned ON conversations (user_id, last_activity_at DESC) WHERE pinned = 1;

CREATE TABLE turns (
  rowid BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
  id TEXT COLLATE "C" PRIMARY KEY,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  user_id TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'completed', 'withdrawn')),
  message TEXT NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  started_at TEXT COLLATE "C",
  finished_at TEXT COLLATE "C",
  result TEXT,
  session_id TEXT COLLATE "C",
  last_entry_id TEXT,
  copy_of TEXT COLLATE "C",
  kept_out INTEGER NOT NULL DEFAULT 0,
  approval_id TEXT COLLATE "C",
  schedule TEXT,
  UNIQUE (conversation_id, seq)
);
CREATE INDEX turns_by_session ON turns (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX turns_unfinished ON turns (user_id) WHERE state IN ('queued', 'running');
CREATE INDEX turns_copied ON turns (copy_of) WHERE copy_of IS NOT NULL;
CREATE INDEX turns_in_session ON turns (conversation_id, state, session_id, seq, id, copy_of);

CREATE TABLE idempotency (
  user_id TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  request_hash TEXT NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  deleted_at TEXT COLLATE "C",
  PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_by_turn ON idempotency (turn_id);
CREATE INDEX idempotency_deleted ON idempotency (deleted_at) WHERE deleted_at IS NOT NULL;

CREATE TABLE events (
  place BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn_id TEXT COLLATE "C" NOT NULL,
  n BIGINT NOT NULL,
  type TEXT NOT NULL,
  data TEXT NOT NULL,
  own_seq BIGINT,
  seq BIGINT GENERATED ALWAYS AS (coalesce(own_seq, place)) STORED,
  UNIQUE (turn_id, n)
);
CREATE UNIQUE INDEX events_in_order ON events (conversation_id, seq);

CREATE TABLE file_changes (
  turn_id TEXT COLLATE "C" PRIMARY KEY REFERENCES turns (id) ON DELETE CASCADE,
  data TEXT NOT NULL
);

CREATE TABLE user_days (
  user_id TEXT COLLATE "C" NOT NULL,
  day TEXT COLLATE "C" NOT NULL,
  turns INTEGER NOT NULL DEFAULT 0,
  cost_usd DOUBLE PRECISION NOT NULL DEFAULT 0,
  PRIMARY KEY (user_id, day)
);

-- turns are counted

CREATE FUNCTION count_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE conversations SET turns = turns + CASE WHEN TG_OP = 'INSERT' THEN 1 ELSE -1 END WHERE id = new.conversation_id;
  RETURN NULL;
END $$;
CREATE TRIGGER turn_counted AFTER INSERT ON turns
  FOR EACH ROW WHEN (new.state != 'withdrawn') EXECUTE FUNCTION count_turn();
CREATE TRIGGER turn_taken_back AFTER UPDATE OF state ON turns
  FOR EACH ROW WHEN (new.state = 'withdrawn' AND old.state != 'withdrawn') EXECUTE FUNCTION count_turn();

-- the search index: titles (without a turn), and messages with replies of completed turns

CREATE TABLE search_texts (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn_id TEXT COLLATE "C" UNIQUE REFERENCES turns (id) ON DELETE CASCADE,
  folded TEXT NOT NULL,
  grams TEXT[] COLLATE "C" NOT NULL
);
CREATE UNIQUE INDEX search_titles ON search_texts (conversation_id) WHERE turn_id IS NULL;
CREATE INDEX search_texts_by_conversation ON search_texts (conversation_id);
CREATE INDEX search_grams ON search_texts USING gin (grams);

CREATE TABLE word_purge (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  asked INTEGER NOT NULL
);

-- turns whose item in memory may not be what they are now

CREATE TABLE record_changes (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  turn_id TEXT COLLATE "C" NOT NULL
);
CREATE FUNCTION note_ended_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF EXISTS (SELECT 1 FROM conversations c WHERE c.id = new.conversation_id AND c.memory_enabled = 0) THEN
    new.kept_out := 1;
  END IF;
  INSERT INTO record_changes (turn_id) VALUES (new.id);
  RETURN new;
END $$;
CREATE TRIGGER ended_turn_changed BEFORE UPDATE OF state ON turns
  FOR EACH ROW WHEN (new.state = 'completed' AND old.state != 'completed') EXECUTE FUNCTION note_ended_turn();
CREATE FUNCTION note_deleted_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO record_changes (turn_id) VALUES (old.id);
  INSERT INTO record_changes (turn_id) SELECT id FROM turns WHERE copy_of = coalesce(old.copy_of, old.id);
  RETURN NULL;
END $$;
CREATE TRIGGER deleted_turn_changed AFTER DELETE ON turns
  FOR EACH ROW WHEN (old.state = 'completed') EXECUTE FUNCTION note_deleted_turn();
CREATE FUNCTION note_changed_conversation() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO record_changes (turn_id) SELECT id FROM turns WHERE conversation_id = new.id AND state = 'completed';
  RETURN NULL;
END $$;
CREATE TRIGGER changed_conversation_changed AFTER UPDATE OF title, memory_enabled, project_id ON conversations
  FOR EACH ROW WHEN (new.title != old.title OR new.memory_enabled != old.memory_enabled
    OR new.project_id IS DISTINCT FROM old.project_id)
  EXECUTE FUNCTION note_changed_conversation();

-- approvals

CREATE TABLE approvals (
  id TEXT COLLATE "C" PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn_id TEXT COLLATE "C" NOT NULL,
  call_index BIGINT NOT NULL,
  tool_use_id TEXT NOT NULL,
  name TEXT NOT NULL,
  summary TEXT NOT NULL,
  language TEXT NOT NULL,
  input TEXT NOT NULL,
  hidden TEXT NOT NULL,
  fingerprint TEXT COLLATE "C" NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'withdrawn', 'lost')),
  decision TEXT CHECK (decision IN ('allow', 'deny')),
  message TEXT NOT NULL,
  answers TEXT,
  created_at TEXT COLLATE "C" NOT NULL,
  ended_at TEXT COLLATE "C"
);
CREATE INDEX approvals_listed ON approvals (user_id, created_at) WHERE state IN ('open', 'lost');
CREATE INDEX approvals_by_conversation ON approvals (conversation_id, state);
CREATE INDEX approvals_by_turn ON approvals (turn_id);

CREATE FUNCTION empty_ended_approvals() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE approvals SET input = '{}', hidden = '[]' WHERE state != 'open' AND (turn_id = new.id OR id = new.approval_id);
  RETURN NULL;
END $$;
CREATE TRIGGER ended_approvals_emptied AFTER UPDATE OF state ON turns
  FOR EACH ROW WHEN (new.state = 'completed' AND old.state != 'completed') EXECUTE FUNCTION empty_ended_approvals();
CREATE FUNCTION reopen_approval() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE approvals SET state = 'open', decision = NULL, message = '', answers = NULL, ended_at = NULL
    WHERE id = new.approval_id AND state = 'answered';
  RETURN NULL;
END $$;
CREATE TRIGGER approval_of_run_taken_back AFTER UPDATE OF state ON turns
  FOR EACH ROW WHEN (new.state = 'withdrawn' AND old.state != 'withdrawn' AND new.approval_id IS NOT NULL)
  EXECUTE FUNCTION reopen_approval();

-- clients of other protocols

CREATE TABLE client_turns (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL,
  thread TEXT COLLATE "C" NOT NULL,
  history TEXT COLLATE "C" NOT NULL,
  turn_id TEXT COLLATE "C" NOT NULL,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE
);
CREATE INDEX client_turns_found ON client_turns (user_id, thread, history);
CREATE INDEX client_turns_by_conversation ON client_turns (conversation_id);

CREATE TABLE client_objects (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  user_id TEXT COLLATE "C" NOT NULL,
  kind TEXT COLLATE "C" NOT NULL CHECK (kind IN ('agent', 'environment', 'session')),
  data TEXT NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  updated_at TEXT COLLATE "C" NOT NULL,
  archived_at TEXT COLLATE "C",
  conversation_id TEXT COLLATE "C" REFERENCES conversations (id) ON DELETE CASCADE
);
CREATE INDEX client_objects_listed ON client_objects (user_id, kind, seq);
CREATE INDEX client_objects_by_conversation ON client_objects (conversation_id);

-- webhooks

CREATE TABLE webhooks (
  rowid BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
  id TEXT COLLATE "C" PRIMARY KEY,
  user_id TEXT COLLATE "C" NOT NULL,
  url TEXT NOT NULL,
  secret TEXT NOT NULL,
  events TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('on', 'off', 'gone')),
  created_at TEXT COLLATE "C" NOT NULL,
  is_served INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX webhooks_listed ON webhooks (user_id, created_at);

CREATE TABLE webhook_deliveries (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  webhook_id TEXT COLLATE "C" NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  type TEXT NOT NULL,
  conversation_id TEXT COLLATE "C" NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn_id TEXT COLLATE "C",
  approval_id TEXT COLLATE "C",
  created_at TEXT COLLATE "C" NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'delivered', 'dead')),
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  queued_at TEXT COLLATE "C" NOT NULL,
  due_at TEXT COLLATE "C" NOT NULL,
  delivered_at TEXT COLLATE "C"
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due_at, webhook_id) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (created_at) WHERE status != 'pending';
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (webhook_id, seq);
CREATE INDEX webhook_deliveries_by_conversation ON webhook_deliveries (conversation_id);

CREATE VIEW webhook_events AS
  SELECT w.user_id, w.id AS webhook_id, e.value AS type FROM webhooks w, json_each(w.events) e
  WHERE w.state = 'on' AND w.is_served = 1;

CREATE FUNCTION deliver(asked TEXT, subject TEXT, conversation TEXT, turn TEXT, approval TEXT, owner TEXT, at TEXT)
RETURNS void LANGUAGE sql AS $$
  INSERT INTO webhook_deliveries
    (id, webhook_id, type, conversation_id, turn_id, approval_id, created_at, queued_at, due_at)
    SELECT 'msg_' || subject || '_' || webhook_id, webhook_id, type, conversation, turn, approval, at, at, at
    FROM webhook_events WHERE user_id = owner AND type = asked
    ON CONFLICT DO NOTHING
$$;
CREATE FUNCTION deliver_conversation() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM deliver('conversation.created', new.id, new.id, NULL, NULL, new.user_id, new.created_at);
  RETURN NULL;
END $$;
CREATE TRIGGER created_conversation_delivered AFTER INSERT ON conversations
  FOR EACH ROW EXECUTE FUNCTION deliver_conversation();
CREATE FUNCTION deliver_approval() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM deliver('approval.requested', new.id, new.conversation_id, new.turn_id, new.id, new.user_id, new.created_at);
  RETURN NULL;
END $$;
CREATE TRIGGER requested_approval_delivered AFTER INSERT ON approvals
  FOR EACH ROW EXECUTE FUNCTION deliver_approval();
CREATE FUNCTION deliver_turn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  PERFORM deliver('turn.completed', new.id, new.conversation_id, new.id, NULL, new.user_id, new.finished_at);
  RETURN NULL;
END $$;
-- an end without a time delivers nothing, and is stored
CREATE TRIGGER ended_turn_delivered AFTER UPDATE OF state ON turns
  FOR EACH ROW WHEN (new.state IN ('completed', 'withdrawn') AND old.state NOT IN ('completed', 'withdrawn')
    AND new.finished_at IS NOT NULL)
  EXECUTE FUNCTION deliver_turn();

-- schedules

CREATE TABLE schedules (
  seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  user_id TEXT COLLATE "C" NOT NULL,
  name TEXT NOT NULL,
  cron TEXT NOT NULL,
  time_zone TEXT NOT NULL,
  message TEXT NOT NULL,
  conversation_id TEXT COLLATE "C",
  project_id TEXT,
  enabled INTEGER NOT NULL,
  created_at TEXT COLLATE "C" NOT NULL,
  due_at TEXT COLLATE "C",
  last_due_at TEXT COLLATE "C",
  last_at TEXT COLLATE "C",
  last_turn_id TEXT,
  last_missed BIGINT NOT NULL,
  problem TEXT
);
CREATE INDEX schedules_listed ON schedules (user_id, seq);
CREATE INDEX schedules_due ON schedules (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX schedules_by_conversation ON schedules (conversation_id) WHERE conversation_id IS NOT NULL;

CREATE FUNCTION switch_schedules_off() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  UPDATE schedules SET enabled = 0, due_at = NULL, problem = json_build_object(
    'code', 'conversation_deleted',
    'message', 'Its conversation was deleted, so it is switched off. Choose another one to switch it on again.',
    'at', to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  )::text WHERE conversation_id = old.id;
  RETURN NULL;
END $$;
CREATE TRIGGER schedules_without_conversation AFTER DELETE ON conversations
  FOR EACH ROW EXECUTE FUNCTION switch_schedules_off();
