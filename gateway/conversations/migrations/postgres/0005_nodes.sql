-- Where other nodes reach one, what they show it, and its process.
ALTER TABLE nodes ADD COLUMN url TEXT COLLATE "C";
ALTER TABLE nodes ADD COLUMN secret TEXT COLLATE "C";
ALTER TABLE nodes ADD COLUMN process TEXT COLLATE "C";
