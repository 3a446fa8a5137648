-- The rows of a period are counted in other orders than that of time: these indexes need the instant, too.
CREATE INDEX CONCURRENTLY IF NOT EXISTS relatorio_facet_numero_recency ON relatorio
    (id_organizacao, id_conta, facet, numero, recency);
DROP INDEX CONCURRENTLY IF EXISTS relatorio_facet_numero;
CREATE INDEX CONCURRENTLY IF NOT EXISTS relatorio_mensagem_recency ON relatorio
    (id_organizacao, id_conta, mensagem, numero, facet, recency);
DROP INDEX CONCURRENTLY IF EXISTS relatorio_mensagem_facet;
CREATE INDEX CONCURRENTLY IF NOT EXISTS pessoa_nome_recency ON pessoa (id_organizacao, nome_busca, cpf, recency);
DROP INDEX CONCURRENTLY IF EXISTS pessoa_nome;
