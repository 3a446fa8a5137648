-- How many persons have a word that shares so many first letters with the word before it, among the different words of
-- their nome_busca in alphabetical order. The persons with a word that begins with certain n letters are as many as the
-- words that begin with these and share fewer than n.
CREATE TABLE word (
    id_organizacao BIGINT           NOT NULL,
    word           TEXT COLLATE "C" NOT NULL,
    shared         BIGINT           NOT NULL,
    total          BIGINT           NOT NULL,
    PRIMARY KEY (id_organizacao, word, shared)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
