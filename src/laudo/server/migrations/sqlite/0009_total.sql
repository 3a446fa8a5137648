-- How many rows each list has, beside its version: both are always read together.
ALTER TABLE organizacao ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conta ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
