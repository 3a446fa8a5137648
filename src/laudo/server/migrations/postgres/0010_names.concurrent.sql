-- Whose names have a word is looked at in the order of time, too: the index has the names.
CREATE INDEX CONCURRENTLY IF NOT EXISTS pessoa_recency_nome ON pessoa (id_organizacao, recency, cpf, nome_busca);
DROP INDEX CONCURRENTLY IF EXISTS pessoa_recency;
