-- Of the put that wrote the entry: microseconds since the epoch, and more than any earlier version of it.
ALTER TABLE entries ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
