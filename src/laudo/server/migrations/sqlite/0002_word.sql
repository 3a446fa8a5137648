-- How many persons have a word that shares so many first letters with the word before it, among the different words of
-- their nome_busca in alphabetical order. The persons with a word that begins with certain n letters are as many as the
-- words that begin with these and share fewer than n.
CREATE TABLE word (
    id_organizacao INTEGER NOT NULL,
    word           TEXT    NOT NULL,
    shared         INTEGER NOT NULL,
    total          INTEGER NOT NULL,
    PRIMARY KEY (id_organizacao, word, shared)
) STRICT, WITHOUT ROWID;
