-- What lies in a period is counted in the order by cpf, too.
CREATE INDEX CONCURRENTLY IF NOT EXISTS pessoa_cpf_recency ON pessoa (id_organizacao, cpf, recency);
