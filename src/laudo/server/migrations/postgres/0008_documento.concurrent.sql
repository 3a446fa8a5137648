-- Few reports of some facets are sorted by their document without a look at each: the index has it too.
CREATE INDEX CONCURRENTLY IF NOT EXISTS relatorio_facet_recency_documento ON relatorio
    (id_organizacao, id_conta, facet, recency, numero, numero_documento);
DROP INDEX CONCURRENTLY IF EXISTS relatorio_facet_recency;
