-- A result that is stored again, after a commit whose fate was unknown, may hold another reply.
CREATE TRIGGER rewritten_turn_reindexed AFTER UPDATE OF result ON turns
WHEN new.state = 'completed' AND old.state = 'completed' AND new.result IS NOT old.result BEGIN
  INSERT INTO search_words (search_words, rowid, grams)
    SELECT 'delete', id, grams(old.message || char(10)
      || CASE WHEN json_valid(old.result) THEN coalesce(old.result ->> '$.reply', '') ELSE '' END, old.user_id)
    FROM search_texts WHERE turn_id = new.id;
  INSERT INTO search_words (rowid, grams)
    SELECT id, grams(new.message || char(10)
      || CASE WHEN json_valid(new.result) THEN coalesce(new.result ->> '$.reply', '') ELSE '' END, new.user_id)
    FROM search_texts WHERE turn_id = new.id;
END;
