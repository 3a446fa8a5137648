"""Input and output: HTTP, the stores, the accounts, the importer."""
