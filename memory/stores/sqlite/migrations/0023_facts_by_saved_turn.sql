-- The turn in which a fact was kept; `items.turn_id` is the one whose message told it.
ALTER TABLE facts ADD COLUMN saved_turn_id TEXT;
CREATE INDEX facts_by_saved_turn ON facts (saved_turn_id) WHERE saved_turn_id IS NOT NULL;
