-- Functions of SQLite that the statements of the stores call, by the same names.

-- Before a text in JSON is taken apart: PostgreSQL's functions refuse the escape of a NUL, wherever it stands.
CREATE FUNCTION json_readable(source TEXT) RETURNS JSON LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN source IS NOT JSON THEN NULL
    WHEN strpos(source, '\u0000') = 0 THEN source
    ELSE regexp_replace(source, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g')
  END::json
$$;

-- The value at a path such as $.usage.input_tokens, as text; NULL if there is none, or it is no JSON.
CREATE FUNCTION json_extract(source TEXT, path TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT json_readable(source) #>> string_to_array(substr(path, 3), '.')
$$;

-- The entries of a list of texts.
CREATE FUNCTION json_each(source TEXT) RETURNS TABLE (value TEXT) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT json_array_elements_text(json_readable(source))
$$;

CREATE FUNCTION json_valid(source TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT source IS JSON
$$;

-- Whether a value matches a pattern with * and ?; one in brackets stands for itself, as [ does.
CREATE FUNCTION glob(pattern TEXT, value TEXT) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT value LIKE
    replace(replace(replace(translate(
      regexp_replace(
        replace(replace(replace(pattern, '[*]', chr(1)), '[?]', chr(2)), '[[]', chr(3)),
        '([\\%_])', '\\\1', 'g'),
      '*?', '%_'), chr(1), '*'), chr(2), '?'), chr(3), '[')
$$;

-- The entries of the list of texts at a path; none if there is no list.
CREATE FUNCTION json_each(source TEXT, path TEXT) RETURNS TABLE (value TEXT)
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT json_array_elements_text(CASE WHEN json_typeof(found) = 'array' THEN found ELSE '[]' END)
  FROM (SELECT json_readable(source) #> string_to_array(substr(path, 3), '.') AS found) AS one
$$;

CREATE FUNCTION instr(value TEXT, part TEXT) RETURNS INTEGER LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT strpos(value, part)
$$;
