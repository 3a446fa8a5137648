-- One account may have nearly all reports among thousands that have few. A plan that serves all accounts is made for the
-- average one, of which any index gives all rows at once: of the largest one it then reads all. Here it is made for the
-- largest one, which suits the others. Citus refuses the statement, and does without: there each plan is made for its owner.
DO '
BEGIN
    ALTER TABLE relatorio ALTER COLUMN id_organizacao SET (n_distinct = 1), ALTER COLUMN id_conta SET (n_distinct = 1);
    ALTER TABLE bucket ALTER COLUMN id_organizacao SET (n_distinct = 1), ALTER COLUMN id_conta SET (n_distinct = 1);
    ALTER TABLE tally ALTER COLUMN id_organizacao SET (n_distinct = 1), ALTER COLUMN id_conta SET (n_distinct = 1);
    ALTER TABLE pessoa ALTER COLUMN id_organizacao SET (n_distinct = 1);
    ANALYZE relatorio, bucket, tally, pessoa;
EXCEPTION WHEN feature_not_supported THEN NULL;
END';
