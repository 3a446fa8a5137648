"""The only writer of reports: files are read into records, and records written in batches."""
