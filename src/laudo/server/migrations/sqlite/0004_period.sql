-- The rows of a period are counted in other orders than that of time: these indexes need the instant, too.
DROP INDEX relatorio_facet_numero;
CREATE INDEX relatorio_facet_numero ON relatorio (id_organizacao, id_conta, facet, numero, recency);
DROP INDEX relatorio_mensagem;
CREATE INDEX relatorio_mensagem ON relatorio (id_organizacao, id_conta, mensagem, numero, facet, recency);
DROP INDEX pessoa_nome;
CREATE INDEX pessoa_nome ON pessoa (id_organizacao, nome_busca, cpf, recency);
