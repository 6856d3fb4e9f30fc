-- Fields of payloads are read from the payloads themselves.
DROP TABLE intent_fields;
