-- Reports of a period are counted in other orders than that of time: these indexes have the instant too.
DROP INDEX relatorio_facet_numero;
CREATE INDEX relatorio_facet_numero ON relatorio (id_organizacao, id_conta, facet, numero, recency);
DROP INDEX relatorio_mensagem;
CREATE INDEX relatorio_mensagem ON relatorio (id_organizacao, id_conta, mensagem, numero, facet, recency);
