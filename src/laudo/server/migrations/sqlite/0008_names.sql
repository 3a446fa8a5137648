-- Persons with a word in their names are looked for in the order of time, too: the index has the names.
DROP INDEX pessoa_recency;
CREATE INDEX pessoa_recency ON pessoa (id_organizacao, recency, cpf, nome_busca);
