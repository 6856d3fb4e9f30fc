-- The search index holds the reply of a completed turn beside its message. A damaged result has no reply.
DROP TRIGGER completed_turn_indexed;
CREATE TRIGGER completed_turn_indexed AFTER UPDATE OF state ON turns
WHEN new.state = 'completed' AND old.state != 'completed' BEGIN
  INSERT INTO search_texts (conversation_id, turn_id) VALUES (new.conversation_id, new.id);
  INSERT INTO search_words (rowid, grams)
    SELECT id, grams(new.message || char(10)
      || CASE WHEN json_valid(new.result) THEN coalesce(new.result ->> '$.reply', '') ELSE '' END, new.user_id)
    FROM search_texts WHERE turn_id = new.id;
END;
DROP TRIGGER deleted_turn_unindexed;
CREATE TRIGGER deleted_turn_unindexed AFTER DELETE ON turns WHEN old.state = 'completed' BEGIN
  INSERT INTO search_words (search_words, rowid, grams)
    SELECT 'delete', id, grams(old.message || char(10)
      || CASE WHEN json_valid(old.result) THEN coalesce(old.result ->> '$.reply', '') ELSE '' END, old.user_id)
    FROM search_texts WHERE turn_id = old.id;
  DELETE FROM search_texts WHERE turn_id = old.id;
END;

INSERT INTO search_words (search_words) VALUES ('delete-all');
INSERT INTO search_words (rowid, grams)
  SELECT s.id, CASE WHEN t.id IS NULL THEN grams(c.title, c.user_id) ELSE grams(t.message || char(10)
    || CASE WHEN json_valid(t.result) THEN coalesce(t.result ->> '$.reply', '') ELSE '' END, t.user_id) END
  FROM search_texts s JOIN conversations c ON c.id = s.conversation_id
  LEFT JOIN turns t ON t.id = s.turn_id;
