-- Persons with a word in their names are looked for in the order of time, too: the index has the names.
CREATE INDEX CONCURRENTLY IF NOT EXISTS pessoa_recency_nome ON pessoa (id_organizacao, recency, cpf, nome_busca);
DROP INDEX CONCURRENTLY IF EXISTS pessoa_recency;
