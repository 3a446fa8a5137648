"""The words that invented people, companies and reports are made of, with how common each is."""

from typing import Final

from laudo.server.ingest.fields import Resultado

# Relative frequencies, roughly estimated and from no register; no entry stands for a real person.
FIRST: Final = """
Maria 15|José 20|Ana 16|João 16|Antônio 10|Francisco 9|Carlos 9|Paulo 9|Pedro 9|Lucas 9|Luiz 9|Marcos 8
Luís 7|Gabriel 8|Rafael 8|Daniel 8|Marcelo 7|Bruno 7|Eduardo 7|Felipe 7|Rodrigo 7|Manoel 4|Mateus 6
André 6|Fernando 6|Fábio 6|Leonardo 6|Gustavo 6|Guilherme 6|Leandro 6|Tiago 6|Anderson 5|Ricardo 6
Márcio 5|Jorge 5|Alexandre 5|Roberto 5|Sérgio 5|Vítor 5|Diego 5|Adriano 4|Cláudio 4|Cauã 2|Davi 5
Otávio 2|Henrique 4|Caio 3|Murilo 3|Renato 3|Raimundo 4|Sebastião 4|Joaquim 3|Íris 1|Ícaro 1|Ubirajara 1
Francisca 6|Antônia 5|Adriana 6|Juliana 6|Márcia 5|Fernanda 6|Patrícia 6|Aline 5|Sandra 5|Camila 5
Amanda 5|Bruna 5|Jéssica 5|Letícia 5|Júlia 6|Luciana 5|Vanessa 5|Mariana 5|Gabriela 5|Vera 4|Vitória 5
Larissa 5|Cláudia 4|Beatriz 5|Rita 4|Luana 4|Sônia 4|Renata 4|Eliane 3|Josefa 4|Simone 4|Natália 4
Cristiane 4|Carla 3|Débora 3|Rosângela 3|Jaqueline 3|Rosa 3|Daniela 3|Aparecida 3|Marlene 3|Terezinha 3
Raimunda 3|Andréia 3|Fabiana 3|Lúcia 3|Raquel 3|Ângela 2|Rafaela 3|Joana 3|Luzia 3|Elaine 3|Daiane 2
Cecília 2|Heloísa 2|Lívia 3|Helena 3|Inês 1|Isadora 2|Conceição 2|Thaís 2|Zélia 1|Yasmin 2
Maria Aparecida 3|Maria Eduarda 4|Maria José 3|Maria de Lourdes 3|Maria Clara 4|Maria das Graças 2
Maria do Carmo 2|Ana Paula 5|Ana Beatriz 4|Ana Clara 4|Ana Carolina 4|João Pedro 4|João Vitor 3
José Carlos 3|José Antônio 2|José Roberto 2|Luiz Carlos 2|Luiz Fernando 2|Pedro Henrique 3
Carlos Eduardo 3|Paulo César 2|Francisco das Chagas 1
"""
SURNAMES: Final = """
da Silva 60|Silva 34|dos Santos 36|Santos 20|de Oliveira 18|Oliveira 18|de Souza 15|Souza 14|Rodrigues 20
Ferreira 19|Alves 18|Pereira 19|Pereira da Silva 6|de Lima 9|Lima 13|Gomes 13|Ribeiro 12|Martins 10
Carvalho 9|de Carvalho 4|Almeida 7|de Almeida 6|Lopes 8|Soares 8|Fernandes 8|Vieira 8|Barbosa 8|Rocha 6
da Rocha 2|Dias 7|Nascimento 5|do Nascimento 7|de Andrade 3|Andrade 5|Moreira 6|Nunes 6|Marques 5
Machado 5|Mendes 5|Freitas 4|de Freitas 3|Cardoso 5|Ramos 5|Gonçalves 7|Santana 4|Teixeira 5|de Araújo 4
Araújo 7|da Costa 9|Costa 10|Monteiro 3|Moura 3|de Moura 2|Cavalcante 3|Castro 3|de Castro 2|Campos 3
Correia 3|da Conceição 4|de Jesus 6|Pinto 3|Pires 2|Batista 4|Borges 3|da Cruz 3|da Cunha 2|Duarte 2
Farias 2|Guimarães 2|de Melo 3|Melo 3|Miranda 2|Morais 2|Nogueira 2|de Paula 2|Peixoto 1|Reis 3|dos Reis 2
Sales 2|Sampaio 1|Siqueira 2|Tavares 2|Xavier 2|Brandão 1|Assunção 1|Leão 1|Muniz 1|Falcão 1|Damião 1
D'Ávila 1|Sant'Anna 1|Bezerra 2|Antunes 1|Azevedo 2|Barros 3|de Barros 1|Braga 1|Fonseca 2|da Fonseca 1
"""
TRADES: Final = """
Padaria 5|Mercado 6|Comercial 8|Transportes 6|Construtora 6|Farmácia 5|Clínica 4|Oficina 3|Papelaria 3
Confecções 4|Distribuidora 5|Indústria 3|Restaurante 5|Serviços Médicos 2|Contabilidade 4|Tecnologia 5
Agropecuária 3|Logística 4|Móveis 2|Gráfica 2|Laticínios 1|Pães e Doces 1|Locações 2|Irmãos 2
"""
BRANDS: Final = """
Aurora 3|Ipê 3|Horizonte 3|Três Rios 1|Boa Vista 2|São João 3|Santa Luzia 2|Araucária 2|Sabiá 2|Jatobá 2
Estrela 3|Progresso 2|Esperança 3|Bandeirante 2|Serra Azul 2|Litoral 2|Pampa 1|Cerrado 2|Ipanema 1
Vale Verde 2|Nova Era 2|Primavera 2|União 3|Alvorada 3|Mandacaru 1|Guará 1|Curió 1|Cajueiro 1|Pitanga 1
"""
FORMS: Final = "Ltda 60|S.A. 10|ME 15|EPP 10|& Filhos Ltda 5"

MATRICES_PESSOA: Final = """
consultaPessoaDefault 30|consultaPessoaCompleta 20|consultaPessoaBasica 14|consultaPessoaCredito 10
consultaPessoaMotorista 10|consultaPessoaAntecedentes 8|consultaPessoaBiometria 8
"""
MATRICES_EMPRESA: Final = """
consultaEmpresaDefault 36|consultaEmpresaCompleta 26|consultaEmpresaSocios 16|consultaEmpresaCredito 12
consultaEmpresaFornecedor 10
"""

# status, resultado, pendente_validacao_manual, mensagem, and how common among older and among the newest
# reports, in thousandths: open reports are mostly new.
OUTCOMES: Final[tuple[tuple[str, Resultado | None, bool, str, int, int], ...]] = (
    ("CONCLUIDO", "VALID", False, "Válido.", 640, 300),
    ("CONCLUIDO", "VALID", False, "Documento e dados cadastrais conferem.", 188, 90),
    ("CONCLUIDO", "VALID", True, "Válido. Conferência manual solicitada.", 8, 6),
    ("CONCLUIDO", "INVALID", False, "Inválido.", 70, 32),
    ("CONCLUIDO", "INVALID", False, "Os dados informados divergem dos dados cadastrais.", 38, 18),
    ("CONCLUIDO", "INVALID", True, "Inválido. Conferência manual solicitada.", 6, 4),
    ("PROCESSANDO", None, False, "Em processamento.", 5, 190),
    ("PRE-PROCESSANDO", None, False, "Na fila de processamento.", 2, 40),
    ("PRE-PROCESSANDO", None, False, "", 1, 20),
    ("EM ANALISE", None, True, "Pendente de validação manual.", 20, 160),
    ("EM ANALISE", None, False, "Em análise.", 3, 20),
    ("PENDENTE", None, True, "Pendente de validação manual.", 15, 96),
    ("PENDENTE", None, False, "Aguardando documento complementar.", 4, 24),
)

# How busy an hour of the week is, Monday first, in UTC, for offices that keep the hours of UTC-3.
HOURS: Final = (2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 5, 8, 9, 9, 7, 7, 9, 9, 9, 8, 5, 3, 3)
DAYS: Final = (20, 21, 21, 21, 18, 5, 3)
