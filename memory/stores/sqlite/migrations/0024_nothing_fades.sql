-- What faded for being shown least lately holds again; what something came in the place of does not.
UPDATE items SET valid_until = NULL
WHERE id IN (SELECT fact_id FROM tidied_facts WHERE action = 'faded' AND undone_at IS NULL)
  AND id NOT IN (SELECT fact_id FROM facts WHERE superseded_by IS NOT NULL);
DROP TABLE tidied_facts;
