-- Deliveries to backends, and what came of them.
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  backend TEXT NOT NULL,
  operation TEXT NOT NULL CHECK (operation IN ('put', 'forget')),
  item_id TEXT NOT NULL,
  owner_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  idempotency_key TEXT NOT NULL UNIQUE,
  status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'dead')),
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  due_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  delivered_at TEXT
) STRICT;
CREATE INDEX outbox_due ON outbox (backend, due_at, id) WHERE status = 'pending';
CREATE INDEX outbox_by_owner ON outbox (owner_id, id DESC);
CREATE INDEX outbox_by_item ON outbox (item_id, backend);

-- What backends made of items: needed to find it there, and to have it forgotten.
CREATE TABLE memory_links (
  item_id TEXT NOT NULL,
  backend TEXT NOT NULL,
  remote_kind TEXT NOT NULL,
  remote_id TEXT NOT NULL,
  PRIMARY KEY (item_id, backend, remote_kind, remote_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_links_by_remote ON memory_links (backend, remote_id);
