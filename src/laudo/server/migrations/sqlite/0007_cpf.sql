-- The persons of a period are counted in the order by cpf, too.
CREATE INDEX pessoa_cpf_recency ON pessoa (id_organizacao, cpf, recency);
