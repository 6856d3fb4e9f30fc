-- The conversation that one was branched off from, the first of them; NULL: it began by itself.
ALTER TABLE conversations ADD COLUMN root_id TEXT;
