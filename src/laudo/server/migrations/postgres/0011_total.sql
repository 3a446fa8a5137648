-- How many rows each list has, beside its version: neither is read without the other.
ALTER TABLE organizacao ADD COLUMN total BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conta ADD COLUMN total BIGINT NOT NULL DEFAULT 0;
