-- To which version a copy came, so that one that follows knows what others have changed since; 0 where none ever did.
ALTER TABLE organizacao ADD COLUMN copied BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conta ADD COLUMN copied BIGINT NOT NULL DEFAULT 0;
