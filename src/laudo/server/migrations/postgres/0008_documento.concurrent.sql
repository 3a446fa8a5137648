-- A few reports of some facets are sorted by document without a look at each: the index has the document, too.
CREATE INDEX CONCURRENTLY IF NOT EXISTS relatorio_facet_recency_documento ON relatorio
    (id_organizacao, id_conta, facet, recency, numero, numero_documento);
DROP INDEX CONCURRENTLY IF EXISTS relatorio_facet_recency;
