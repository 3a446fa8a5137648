-- The store. Instants are integer milliseconds (UTC); id_organizacao stands first in every key and index, so that
-- one schema serves SQLite, PostgreSQL and a store sharded by organization.

-- Which of these files have been applied.
CREATE TABLE migration (
    name       TEXT    NOT NULL PRIMARY KEY,
    applied_at INTEGER NOT NULL
) STRICT;

CREATE TABLE organizacao (
    id_organizacao   INTEGER NOT NULL PRIMARY KEY,
    nome_organizacao TEXT    NOT NULL,
    enabled          INTEGER NOT NULL DEFAULT 1,
    version          INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE conta (
    id_organizacao INTEGER NOT NULL REFERENCES organizacao,
    id_conta       INTEGER NOT NULL,
    nome_conta     TEXT    NOT NULL,
    webhook_url    TEXT    NOT NULL DEFAULT '',
    enabled        INTEGER NOT NULL DEFAULT 1,
    version        INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id_organizacao, id_conta)
) STRICT;

CREATE TABLE usuario (
    id_organizacao INTEGER NOT NULL,
    id_conta       INTEGER NOT NULL,
    id_usuario     INTEGER NOT NULL,
    email          TEXT    NOT NULL,
    nome_usuario   TEXT    NOT NULL,
    enabled        INTEGER NOT NULL DEFAULT 1,
    PRIMARY KEY (id_organizacao, id_usuario),
    FOREIGN KEY (id_organizacao, id_conta) REFERENCES conta
) STRICT;

-- The one table that is asked without an owner: it is what tells the owner.
CREATE TABLE token (
    hash           BLOB    NOT NULL PRIMARY KEY,
    id_token       INTEGER NOT NULL UNIQUE,
    id_organizacao INTEGER NOT NULL,
    id_conta       INTEGER NOT NULL,
    id_usuario     INTEGER NOT NULL,
    created_at     INTEGER NOT NULL,
    expires_at     INTEGER,
    revoked_at     INTEGER
) STRICT;

-- A facet is one distinct combination of the five fields that have few values; a report stores its facet's number.
-- Facets are never deleted, only emptied: total is how many reports have it.
CREATE TABLE facet (
    id_organizacao            INTEGER NOT NULL,
    id_conta                  INTEGER NOT NULL,
    facet                     INTEGER NOT NULL,
    nome                      TEXT    NOT NULL,
    tipo_pessoa               TEXT    NOT NULL,
    status                    TEXT    NOT NULL,
    resultado                 TEXT,
    pendente_validacao_manual INTEGER NOT NULL,
    total                     INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (id_organizacao, id_conta, facet)
) STRICT, WITHOUT ROWID;

-- A bucket is a range of an account's reports in the order of one axis: from lower (a key of the axis as bytes that
-- sort as keys do) up to the next bucket's. Buckets with parent 0 are coarse; each is the parent of fine ones. The
-- persons of an organization have buckets too, under id_conta 0.
CREATE TABLE bucket (
    id_organizacao INTEGER NOT NULL,
    id_conta       INTEGER NOT NULL,
    axis           INTEGER NOT NULL,
    parent         INTEGER NOT NULL,
    bucket         INTEGER NOT NULL,
    lower          BLOB    NOT NULL,
    total          INTEGER NOT NULL,
    PRIMARY KEY (id_organizacao, id_conta, axis, parent, bucket)
) STRICT, WITHOUT ROWID;

-- How many reports of a bucket have a facet; no row where there are none.
CREATE TABLE tally (
    id_organizacao INTEGER NOT NULL,
    id_conta       INTEGER NOT NULL,
    axis           INTEGER NOT NULL,
    parent         INTEGER NOT NULL,
    facet          INTEGER NOT NULL,
    bucket         INTEGER NOT NULL,
    total          INTEGER NOT NULL,
    PRIMARY KEY (id_organizacao, id_conta, axis, parent, facet, bucket)
) STRICT, WITHOUT ROWID;

-- numero is the UUID's 16 bytes; recency is atualizado_em negated, so that the newest come first in ascending order;
-- item is the report's JSON, made once, when written.
CREATE TABLE relatorio (
    id_organizacao   INTEGER NOT NULL,
    id_conta         INTEGER NOT NULL,
    numero           BLOB    NOT NULL,
    facet            INTEGER NOT NULL,
    recency          INTEGER NOT NULL,
    numero_documento TEXT    NOT NULL,
    nome_pessoa      TEXT    NOT NULL,
    mensagem         TEXT    NOT NULL,
    item             TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX relatorio_numero ON relatorio (id_organizacao, id_conta, numero);
CREATE INDEX relatorio_recency ON relatorio (id_organizacao, id_conta, recency, numero, facet);
CREATE INDEX relatorio_facet_recency ON relatorio (id_organizacao, id_conta, facet, recency, numero);
CREATE INDEX relatorio_facet_numero ON relatorio (id_organizacao, id_conta, facet, numero);
CREATE INDEX relatorio_documento ON relatorio (id_organizacao, id_conta, numero_documento, numero, facet, recency);
CREATE INDEX relatorio_mensagem ON relatorio (id_organizacao, id_conta, mensagem, numero);

-- One row per organization and CPF: the name of its newest report in any account, and that report's instant.
CREATE TABLE pessoa (
    id             INTEGER PRIMARY KEY,
    id_organizacao INTEGER NOT NULL,
    cpf            TEXT    NOT NULL,
    nome           TEXT    NOT NULL,
    nome_busca     TEXT    NOT NULL,
    recency        INTEGER NOT NULL,
    item           TEXT    NOT NULL
) STRICT;

CREATE UNIQUE INDEX pessoa_cpf ON pessoa (id_organizacao, cpf);
CREATE INDEX pessoa_recency ON pessoa (id_organizacao, recency, cpf);
CREATE INDEX pessoa_nome ON pessoa (id_organizacao, nome_busca, cpf);

-- The words of nome_busca, each with its organization before it, so that no search meets another organization's.
CREATE VIRTUAL TABLE pessoa_words USING fts5 (
    words, content = '', contentless_delete = 1, tokenize = 'ascii', detail = none
);
