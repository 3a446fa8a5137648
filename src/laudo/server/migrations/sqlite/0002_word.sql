-- How many persons have a word whose first letters, so many, are those of the word before it: of the different words of
-- nome_busca in alphabetical order. With n letters begin the words of as many persons as the words do that begin with
-- these and share fewer than n.
CREATE TABLE word (
    id_organizacao INTEGER NOT NULL,
    word           TEXT    NOT NULL,
    shared         INTEGER NOT NULL,
    total          INTEGER NOT NULL,
    PRIMARY KEY (id_organizacao, word, shared)
) STRICT, WITHOUT ROWID;
