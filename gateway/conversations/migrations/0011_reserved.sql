-- Nothing: the number belongs to a change that is made elsewhere.
SELECT 1;
