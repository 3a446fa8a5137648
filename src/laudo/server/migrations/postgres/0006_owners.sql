-- One account may have nearly all reports, and thousands of others few. A plan for all accounts is made for the average
-- one, all of whose rows any index gives at once; for the largest account it then reads all rows. With these settings
-- it is made for the largest one, which suits the others. Citus refuses the statement, and does not need it: there each
-- plan is made for its owner.
DO '
BEGIN
    ALTER TABLE relatorio ALTER COLUMN id_organizacao SET (n_distinct = 1), ALTER COLUMN id_conta SET (n_distinct = 1);
    ALTER TABLE bucket ALTER COLUMN id_organizacao SET (n_distinct = 1), ALTER COLUMN id_conta SET (n_distinct = 1);
    ALTER TABLE tally ALTER COLUMN id_organizacao SET (n_distinct = 1), ALTER COLUMN id_conta SET (n_distinct = 1);
    ALTER TABLE pessoa ALTER COLUMN id_organizacao SET (n_distinct = 1);
    ANALYZE relatorio, bucket, tally, pessoa;
EXCEPTION WHEN feature_not_supported THEN NULL;
END';
