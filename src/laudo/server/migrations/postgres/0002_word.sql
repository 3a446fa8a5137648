-- How many persons have a word whose first letters, so many, are those of the word before it: of the different words of
-- nome_busca in alphabetical order. With n letters begin the words of as many persons as the words do that begin with
-- these and share fewer than n.
CREATE TABLE word (
    id_organizacao BIGINT           NOT NULL,
    word           TEXT COLLATE "C" NOT NULL,
    shared         BIGINT           NOT NULL,
    total          BIGINT           NOT NULL,
    PRIMARY KEY (id_organizacao, word, shared)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
