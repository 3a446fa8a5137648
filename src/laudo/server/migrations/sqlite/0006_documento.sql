-- A few reports of some facets are sorted by document without a look at each: the index has the document, too.
DROP INDEX relatorio_facet_recency;
CREATE INDEX relatorio_facet_recency ON relatorio (id_organizacao, id_conta, facet, recency, numero, numero_documento);
