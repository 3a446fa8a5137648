"""How a store's tables lie where PostgreSQL is many machines: the one list of them, which a test holds to be whole."""

from typing import Final

DISTRIBUTED: Final = ("organizacao", "conta", "usuario", "facet", "bucket", "tally", "relatorio", "pessoa")
"""Each row lies with its organization, by id_organizacao; a table comes after those that its foreign keys name."""

REFERENCE: Final = ("migration", "token", "heartbeat")
"""Whole on every machine: what is asked for without an organization."""
