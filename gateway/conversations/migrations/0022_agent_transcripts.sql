-- What the agent program also writes to its files, where several servers share the database: a session's transcript, and those of its sub-agents.
CREATE TABLE agent_transcripts (
  session TEXT NOT NULL,
  -- '': the session's own
  subpath TEXT NOT NULL,
  entries INTEGER NOT NULL,
  -- how many of the entries have one
  uuids INTEGER NOT NULL,
  last_uuid TEXT,
  PRIMARY KEY (session, subpath)
) STRICT, WITHOUT ROWID;

CREATE TABLE agent_entries (
  session TEXT NOT NULL,
  subpath TEXT NOT NULL,
  -- from 0, without gaps
  n INTEGER NOT NULL,
  uuid TEXT,
  -- JSON as the agent program wrote it
  entry BLOB NOT NULL,
  PRIMARY KEY (session, subpath, n),
  FOREIGN KEY (session, subpath) REFERENCES agent_transcripts (session, subpath) ON DELETE CASCADE
) STRICT;
CREATE UNIQUE INDEX agent_entries_once ON agent_entries (session, subpath, uuid) WHERE uuid IS NOT NULL;

-- Sessions that were deleted, whose files other servers may still have.
CREATE TABLE agent_deletions (
  session TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
