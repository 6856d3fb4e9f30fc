-- expand
-- As SQLite's `0027_words_of_requests`.
DELETE FROM forgotten_on_request WHERE turn_id NOT LIKE 'trn_%' OR turn_id IN (SELECT turn_id FROM ended_turns);
