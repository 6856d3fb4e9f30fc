-- Episodes: what an item of that kind is made of.
CREATE TABLE episodes (
  id INTEGER PRIMARY KEY,
  episode_id TEXT NOT NULL UNIQUE,
  owner_id TEXT NOT NULL,
  realm TEXT NOT NULL,            -- the owner and the labels: nothing is merged across
  episode_type TEXT NOT NULL,
  tags_key TEXT,                  -- the tags, where being of one type and tags is enough to merge; else null
  last_at TEXT NOT NULL,          -- when it, or what went into it, happened last
  room INTEGER NOT NULL,          -- how many variants can still be added
  marks TEXT NOT NULL,            -- its rows of `episode_marks`, as JSON
  value TEXT NOT NULL             -- the whole episode as JSON
) STRICT;
CREATE INDEX episodes_by_tags ON episodes (realm, episode_type, tags_key, last_at)
  WHERE tags_key IS NOT NULL AND room > 0;

-- Texts that an episode stands for: itself and what was merged into it.
CREATE TABLE episode_forms (
  fingerprint BLOB NOT NULL PRIMARY KEY,
  episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX episode_forms_by_episode ON episode_forms (episode);

-- A few marks of each text: like texts share some. An episode's own stand in `episodes.marks`.
CREATE TABLE episode_marks (
  mark INTEGER NOT NULL,
  episode INTEGER NOT NULL,
  PRIMARY KEY (mark, episode)
) STRICT, WITHOUT ROWID;

-- The intents that an episode was made of, those of its repetitions and variants too.
CREATE TABLE episode_sources (
  episode INTEGER NOT NULL REFERENCES episodes (id) ON DELETE CASCADE,
  intent_id TEXT NOT NULL,
  PRIMARY KEY (episode, intent_id)
) STRICT, WITHOUT ROWID;
