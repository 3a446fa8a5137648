-- The order by mensagem is one of the axes: its index has the facet too, and its rows are counted in buckets.
DROP INDEX relatorio_mensagem;
CREATE INDEX relatorio_mensagem ON relatorio (id_organizacao, id_conta, mensagem, numero, facet);
