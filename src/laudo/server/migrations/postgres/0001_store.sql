-- The same store as on SQLite; `laudo.server.citus` says how its tables are distributed over machines. Every number
-- is a BIGINT, and every text is compared by its bytes. There are no triggers, sequences, functions or views, and no
-- defaults but constants. Counters are in no index, and their pages keep room, so that a count is written in place.

-- Which of these files have been applied.
CREATE TABLE migration (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    applied_at BIGINT           NOT NULL
);

CREATE TABLE organizacao (
    id_organizacao   BIGINT           NOT NULL PRIMARY KEY,
    nome_organizacao TEXT COLLATE "C" NOT NULL,
    enabled          BIGINT           NOT NULL DEFAULT 1,
    version          BIGINT           NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE conta (
    id_organizacao BIGINT           NOT NULL REFERENCES organizacao,
    id_conta       BIGINT           NOT NULL,
    nome_conta     TEXT COLLATE "C" NOT NULL,
    webhook_url    TEXT COLLATE "C" NOT NULL DEFAULT '',
    enabled        BIGINT           NOT NULL DEFAULT 1,
    version        BIGINT           NOT NULL DEFAULT 0,
    PRIMARY KEY (id_organizacao, id_conta)
) WITH (fillfactor = 50);

CREATE TABLE usuario (
    id_organizacao BIGINT           NOT NULL,
    id_conta       BIGINT           NOT NULL,
    id_usuario     BIGINT           NOT NULL,
    email          TEXT COLLATE "C" NOT NULL,
    nome_usuario   TEXT COLLATE "C" NOT NULL,
    enabled        BIGINT           NOT NULL DEFAULT 1,
    PRIMARY KEY (id_organizacao, id_usuario),
    FOREIGN KEY (id_organizacao, id_conta) REFERENCES conta
);

-- The one table that is asked without an owner: it is what tells the owner.
CREATE TABLE token (
    hash           BYTEA  NOT NULL PRIMARY KEY,
    id_token       BIGINT NOT NULL UNIQUE,
    id_organizacao BIGINT NOT NULL,
    id_conta       BIGINT NOT NULL,
    id_usuario     BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    expires_at     BIGINT,
    revoked_at     BIGINT
);

-- A facet is one distinct combination of the five fields that have few values; a report stores its facet's number.
-- Facets are never deleted, only emptied: total is how many reports have it.
CREATE TABLE facet (
    id_organizacao            BIGINT           NOT NULL,
    id_conta                  BIGINT           NOT NULL,
    facet                     BIGINT           NOT NULL,
    nome                      TEXT COLLATE "C" NOT NULL,
    tipo_pessoa               TEXT COLLATE "C" NOT NULL,
    status                    TEXT COLLATE "C" NOT NULL,
    resultado                 TEXT COLLATE "C",
    pendente_validacao_manual BIGINT           NOT NULL,
    total                     BIGINT           NOT NULL DEFAULT 0,
    PRIMARY KEY (id_organizacao, id_conta, facet)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- A bucket is a range of an account's reports in the order of one axis: from lower (a key of the axis as bytes that
-- sort as keys do) up to the next bucket's. Buckets with parent 0 are coarse; each is the parent of fine ones. The
-- persons of an organization have buckets too, under id_conta 0.
CREATE TABLE bucket (
    id_organizacao BIGINT NOT NULL,
    id_conta       BIGINT NOT NULL,
    axis           BIGINT NOT NULL,
    parent         BIGINT NOT NULL,
    bucket         BIGINT NOT NULL,
    lower          BYTEA  NOT NULL,
    total          BIGINT NOT NULL,
    PRIMARY KEY (id_organizacao, id_conta, axis, parent, bucket)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- How many reports of a bucket have a facet; no row where there are none.
CREATE TABLE tally (
    id_organizacao BIGINT NOT NULL,
    id_conta       BIGINT NOT NULL,
    axis           BIGINT NOT NULL,
    parent         BIGINT NOT NULL,
    facet          BIGINT NOT NULL,
    bucket         BIGINT NOT NULL,
    total          BIGINT NOT NULL,
    PRIMARY KEY (id_organizacao, id_conta, axis, parent, facet, bucket)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);

-- numero is the UUID's 16 bytes; recency is atualizado_em negated, so that the newest come first in ascending order;
-- item is the report's JSON, made once, when written. An index is read without the table for pages that a vacuum has
-- found visible to all: it runs after each fiftieth of new rows.
CREATE TABLE relatorio (
    id_organizacao   BIGINT           NOT NULL,
    id_conta         BIGINT           NOT NULL,
    numero           BYTEA            NOT NULL,
    facet            BIGINT           NOT NULL,
    recency          BIGINT           NOT NULL,
    numero_documento TEXT COLLATE "C" NOT NULL,
    nome_pessoa      TEXT COLLATE "C" NOT NULL,
    mensagem         TEXT COLLATE "C" NOT NULL,
    item             TEXT COLLATE "C" NOT NULL,
    CONSTRAINT relatorio_numero PRIMARY KEY (id_organizacao, id_conta, numero)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.02);

CREATE INDEX relatorio_recency ON relatorio (id_organizacao, id_conta, recency, numero, facet);
CREATE INDEX relatorio_facet_recency ON relatorio (id_organizacao, id_conta, facet, recency, numero);
CREATE INDEX relatorio_facet_numero ON relatorio (id_organizacao, id_conta, facet, numero);
CREATE INDEX relatorio_documento ON relatorio (id_organizacao, id_conta, numero_documento, numero, facet, recency);
CREATE INDEX relatorio_mensagem ON relatorio (id_organizacao, id_conta, mensagem, numero);

-- One row per organization and CPF: the name of its newest report in any account, and that report's instant.
CREATE TABLE pessoa (
    id_organizacao BIGINT           NOT NULL,
    cpf            TEXT COLLATE "C" NOT NULL,
    nome           TEXT COLLATE "C" NOT NULL,
    nome_busca     TEXT COLLATE "C" NOT NULL,
    recency        BIGINT           NOT NULL,
    item           TEXT COLLATE "C" NOT NULL,
    CONSTRAINT pessoa_cpf PRIMARY KEY (id_organizacao, cpf)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.02);

CREATE INDEX pessoa_recency ON pessoa (id_organizacao, recency, cpf);
CREATE INDEX pessoa_nome ON pessoa (id_organizacao, nome_busca, cpf);

-- The words of nome_busca, each with its organization before it, so that no search meets another organization's. With
-- fastupdate, every search would scan what the last imports left pending: 13 ms instead of 0.3 at 320,000 persons.
CREATE INDEX pessoa_words ON pessoa USING gin (array_to_tsvector(string_to_array(
    id_organizacao::text || '·' || replace(nome_busca, ' ', ' ' || id_organizacao::text || '·'), ' '))) WITH (fastupdate = off);

-- The heartbeat, under id 1: a replica that shows an old one lags. The others tell starts of the primary.
CREATE TABLE heartbeat (
    id    BIGINT NOT NULL PRIMARY KEY,
    at_ms BIGINT NOT NULL
);

INSERT INTO heartbeat (id, at_ms) VALUES (1, 0);

-- An account belongs to one organization: a planner that multiplies their odds would expect one row, and sort all.
CREATE STATISTICS conta_owner (dependencies, ndistinct) ON id_organizacao, id_conta FROM conta;
CREATE STATISTICS usuario_owner (dependencies, ndistinct) ON id_organizacao, id_conta FROM usuario;
CREATE STATISTICS facet_owner (dependencies, ndistinct) ON id_organizacao, id_conta FROM facet;
CREATE STATISTICS bucket_owner (dependencies, ndistinct) ON id_organizacao, id_conta FROM bucket;
CREATE STATISTICS tally_owner (dependencies, ndistinct) ON id_organizacao, id_conta FROM tally;
CREATE STATISTICS relatorio_owner (dependencies, ndistinct) ON id_organizacao, id_conta FROM relatorio;
