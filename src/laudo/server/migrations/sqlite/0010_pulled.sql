-- The version that the last pull noted, so that the next one knows whether a backup has set the account back.
ALTER TABLE conta ADD COLUMN pulled INTEGER NOT NULL DEFAULT 0;
UPDATE conta SET pulled = version;
