CREATE TABLE agent_transcripts (
  session TEXT COLLATE "C" NOT NULL,
  subpath TEXT COLLATE "C" NOT NULL,
  entries BIGINT NOT NULL,
  uuids BIGINT NOT NULL,
  last_uuid TEXT COLLATE "C",
  PRIMARY KEY (session, subpath)
) WITH (fillfactor = 70);

CREATE TABLE agent_entries (
  session TEXT COLLATE "C" NOT NULL,
  subpath TEXT COLLATE "C" NOT NULL,
  n BIGINT NOT NULL,
  uuid TEXT COLLATE "C",
  entry BYTEA NOT NULL,
  PRIMARY KEY (session, subpath, n),
  FOREIGN KEY (session, subpath) REFERENCES agent_transcripts (session, subpath) ON DELETE CASCADE
);
CREATE UNIQUE INDEX agent_entries_once ON agent_entries (session, subpath, uuid) WHERE uuid IS NOT NULL;

CREATE TABLE agent_deletions (
  session TEXT COLLATE "C" PRIMARY KEY
);
