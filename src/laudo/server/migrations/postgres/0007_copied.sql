-- The version that the last copy reached, so that the next one knows what others have changed since; 0 without one.
ALTER TABLE organizacao ADD COLUMN copied BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conta ADD COLUMN copied BIGINT NOT NULL DEFAULT 0;
