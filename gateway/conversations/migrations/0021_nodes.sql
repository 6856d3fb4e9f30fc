-- Where other nodes reach one, what they show it, and its process.
ALTER TABLE nodes ADD COLUMN url TEXT;
ALTER TABLE nodes ADD COLUMN secret TEXT;
ALTER TABLE nodes ADD COLUMN process TEXT;
