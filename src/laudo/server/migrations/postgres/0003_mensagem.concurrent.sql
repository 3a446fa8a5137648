-- The order by mensagem becomes one of the axes: its index needs the facet, too.
CREATE INDEX CONCURRENTLY IF NOT EXISTS relatorio_mensagem_facet ON relatorio
    (id_organizacao, id_conta, mensagem, numero, facet);
DROP INDEX CONCURRENTLY IF EXISTS relatorio_mensagem;
