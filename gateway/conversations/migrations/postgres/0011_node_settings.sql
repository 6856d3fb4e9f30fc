-- expand
-- Digests of a node's settings, which others compare with theirs: an object in JSON.
ALTER TABLE nodes ADD COLUMN settings TEXT COLLATE "C";
