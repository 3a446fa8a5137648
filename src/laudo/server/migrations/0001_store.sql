-- The store. Instants are integer milliseconds (UTC); id_organizacao stands first in every key and index, so that
-- one schema serves SQLite, PostgreSQL and a store sharded by organization.

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
CREATE TABLE facet (
    id_organizacao            INTEGER NOT NULL,
    id_conta                  INTEGER NOT NULL,
    facet                     INTEGER NOT NULL,
    nome                      TEXT    NOT NULL,
    tipo_pessoa               TEXT    NOT NULL,
    status                    TEXT    NOT NULL,
    resultado                 TEXT,
    pendente_validacao_manual INTEGER NOT NULL,
    PRIMARY KEY (id_organizacao, id_conta, facet)
) STRICT, WITHOUT ROWID;

-- numero is the UUID's 16 bytes; item is the report's JSON, made once, when written.
CREATE TABLE relatorio (
    id_organizacao   INTEGER NOT NULL,
    id_conta         INTEGER NOT NULL,
    numero           BLOB    NOT NULL,
    facet            INTEGER NOT NULL,
    atualizado_em    INTEGER NOT NULL,
    numero_documento TEXT    NOT NULL,
    nome_pessoa      TEXT    NOT NULL,
    mensagem         TEXT    NOT NULL,
    item             TEXT    NOT NULL,
    PRIMARY KEY (id_organizacao, id_conta, numero)
) STRICT;

CREATE INDEX relatorio_atualizado_em
    ON relatorio (id_organizacao, id_conta, atualizado_em DESC, numero, facet);
CREATE INDEX relatorio_facet
    ON relatorio (id_organizacao, id_conta, facet, atualizado_em DESC, numero);
CREATE INDEX relatorio_numero_documento
    ON relatorio (id_organizacao, id_conta, numero_documento, atualizado_em DESC, numero, facet);

-- One row per organization and CPF: the name of its newest report in any account, and that report's instant.
CREATE TABLE pessoa (
    id_organizacao INTEGER NOT NULL,
    cpf            TEXT    NOT NULL,
    nome           TEXT    NOT NULL,
    nome_busca     TEXT    NOT NULL,
    atualizado_em  INTEGER NOT NULL,
    item           TEXT    NOT NULL,
    PRIMARY KEY (id_organizacao, cpf)
) STRICT;

CREATE INDEX pessoa_atualizado_em ON pessoa (id_organizacao, atualizado_em DESC, cpf);
CREATE INDEX pessoa_nome_busca ON pessoa (id_organizacao, nome_busca, cpf);
