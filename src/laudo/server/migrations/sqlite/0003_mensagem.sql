-- The order by mensagem becomes one of the axes: its index needs the facet, too, and its rows are counted in buckets.
DROP INDEX relatorio_mensagem;
CREATE INDEX relatorio_mensagem ON relatorio (id_organizacao, id_conta, mensagem, numero, facet);
