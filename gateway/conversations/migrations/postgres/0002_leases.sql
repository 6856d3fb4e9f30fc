CREATE TABLE nodes (
  id TEXT COLLATE "C" PRIMARY KEY,
  incarnation TEXT COLLATE "C" NOT NULL,
  expires_at BIGINT NOT NULL,
  draining INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE leases (
  conversation_id TEXT COLLATE "C" PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
  node_id TEXT COLLATE "C",
  incarnation TEXT COLLATE "C",
  epoch BIGINT NOT NULL,
  last_seq BIGINT NOT NULL
);
CREATE INDEX leases_by_node ON leases (node_id) WHERE node_id IS NOT NULL;

ALTER TABLE turns ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
