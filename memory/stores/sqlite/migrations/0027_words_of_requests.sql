-- What an agent of another program forgot, or a model that read an ended turn, stayed here with its words.
DELETE FROM forgotten_on_request WHERE turn_id NOT LIKE 'trn_%' OR turn_id IN (SELECT turn_id FROM ended_turns);
