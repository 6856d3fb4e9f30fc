-- What grows with a conversation is counted and indexed as it is written, not read again at every question.
-- `grams` and `casefold` are functions of the program (memory/stores/sqlite): only it writes to these tables.

-- Turns that were accepted and not taken back.
ALTER TABLE conversations ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
UPDATE conversations SET turns =
  (SELECT count(*) FROM turns t WHERE t.conversation_id = conversations.id AND t.state != 'withdrawn');

CREATE TRIGGER turn_counted AFTER INSERT ON turns WHEN new.state != 'withdrawn' BEGIN
  UPDATE conversations SET turns = turns + 1 WHERE id = new.conversation_id;
END;
CREATE TRIGGER turn_taken_back AFTER UPDATE OF state ON turns
WHEN new.state = 'withdrawn' AND old.state != 'withdrawn' BEGIN
  UPDATE conversations SET turns = turns - 1 WHERE id = new.conversation_id;
END;

-- Texts in the search index: titles (without a turn) and messages of completed turns. Queued and
-- running turns are few and searched directly; withdrawn ones are never found.
CREATE TABLE search_texts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL,
  turn_id TEXT UNIQUE
) STRICT;
CREATE UNIQUE INDEX search_titles ON search_texts (conversation_id) WHERE turn_id IS NULL;
CREATE VIRTUAL TABLE search_words USING fts5
  (grams, content='', detail=none, columnsize=0, tokenize='ascii');

-- Asks for the words of deleted texts to be taken out of the index's blocks.
CREATE TABLE word_purge (
  only_one INTEGER PRIMARY KEY CHECK (only_one = 1),
  asked INTEGER NOT NULL
) STRICT;

-- Copies of completed turns are indexed together by whoever inserts them: FTS5 writes a block for each statement.
CREATE TRIGGER completed_turn_indexed AFTER UPDATE OF state ON turns
WHEN new.state = 'completed' AND old.state != 'completed' BEGIN
  INSERT INTO search_texts (conversation_id, turn_id) VALUES (new.conversation_id, new.id);
  INSERT INTO search_words (rowid, grams)
    SELECT id, grams(new.message, new.user_id) FROM search_texts WHERE turn_id = new.id;
END;
CREATE TRIGGER deleted_turn_unindexed AFTER DELETE ON turns WHEN old.state = 'completed' BEGIN
  INSERT INTO search_words (search_words, rowid, grams)
    SELECT 'delete', id, grams(old.message, old.user_id) FROM search_texts WHERE turn_id = old.id;
  DELETE FROM search_texts WHERE turn_id = old.id;
END;

CREATE TRIGGER title_indexed AFTER INSERT ON conversations WHEN new.title != '' BEGIN
  INSERT INTO search_texts (conversation_id) VALUES (new.id);
  INSERT INTO search_words (rowid, grams)
    SELECT id, grams(new.title, new.user_id) FROM search_texts
    WHERE conversation_id = new.id AND turn_id IS NULL;
END;
CREATE TRIGGER changed_title_indexed AFTER UPDATE OF title ON conversations
WHEN new.title != old.title BEGIN
  INSERT INTO search_words (search_words, rowid, grams)
    SELECT 'delete', id, grams(old.title, old.user_id) FROM search_texts
    WHERE conversation_id = old.id AND turn_id IS NULL;
  INSERT OR IGNORE INTO search_texts (conversation_id) VALUES (new.id);
  INSERT INTO search_words (rowid, grams)
    SELECT id, grams(new.title, new.user_id) FROM search_texts
    WHERE conversation_id = new.id AND turn_id IS NULL;
END;
CREATE TRIGGER deleted_title_unindexed AFTER DELETE ON conversations BEGIN
  INSERT INTO search_words (search_words, rowid, grams)
    SELECT 'delete', id, grams(old.title, old.user_id) FROM search_texts
    WHERE conversation_id = old.id AND turn_id IS NULL;
  DELETE FROM search_texts WHERE conversation_id = old.id AND turn_id IS NULL;
  INSERT INTO word_purge (only_one, asked) VALUES (1, 1)
    ON CONFLICT (only_one) DO UPDATE SET asked = asked + 1;
END;

INSERT INTO search_texts (conversation_id) SELECT id FROM conversations WHERE title != '';
INSERT INTO search_texts (conversation_id, turn_id)
  SELECT conversation_id, id FROM turns WHERE state = 'completed';
INSERT INTO search_words (rowid, grams)
  SELECT s.id, CASE WHEN t.id IS NULL THEN grams(c.title, c.user_id) ELSE grams(t.message, t.user_id) END
  FROM search_texts s JOIN conversations c ON c.id = s.conversation_id
  LEFT JOIN turns t ON t.id = s.turn_id;
