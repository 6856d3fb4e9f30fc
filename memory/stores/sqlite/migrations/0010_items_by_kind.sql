-- Which rows are an owner's, of a kind, those written last: told without reading the items.
CREATE INDEX items_by_kind ON items (owner_id, kind);
