-- Notes are split by sections now: each file is read again at the next scan.
UPDATE note_files SET mtime_ns = 0, size = 0, digest = '';
