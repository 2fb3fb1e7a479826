-- What must be refused, one query in a line. `class` names what the lines behind it try, `says` what must be said of each.
-- The views are those of a stage: `orders` and `others`.

-- class: Java
-- says: it runs Java code
SELECT reflect('java.lang.System', 'getenv', 'PATH') AS x FROM orders
SELECT java_method('java.lang.Runtime', 'getRuntime') AS x FROM orders
SELECT try_reflect('java.lang.System', 'getProperty', 'user.home') AS x FROM orders
SELECT ReFlEcT('java.lang.System', 'getenv', 'PATH') AS x FROM orders
SELECT `reflect`('java.lang.System', 'getenv', 'PATH') AS x FROM orders
SELECT reflect /* not seen */ ('java.lang.System', 'getenv', 'PATH') AS x FROM orders
WITH a AS (SELECT reflect('java.lang.System', 'getenv', 'PATH') AS x FROM orders) SELECT * FROM a
SELECT * FROM (SELECT order_id, reflect('java.lang.System', 'getenv', 'PATH') AS x FROM orders) AS a
SELECT order_id FROM orders WHERE reflect('java.lang.System', 'getenv', 'PATH') = 'x'
SELECT order_id FROM orders WHERE order_id IN (SELECT reflect('java.lang.System', 'getenv', 'PATH') FROM others)
SELECT order_id FROM orders WHERE EXISTS (SELECT 1 FROM others WHERE reflect('a', 'b') = note)
SELECT (SELECT max(reflect('java.lang.System', 'getenv', 'PATH')) FROM others) AS x FROM orders
SELECT order_id FROM orders UNION ALL SELECT reflect('java.lang.System', 'getenv', 'PATH') FROM others
SELECT order_id, x FROM orders LATERAL VIEW explode(array(reflect('java.lang.System', 'getenv', 'PATH'))) t AS x
SELECT o.order_id, l.x FROM orders o, LATERAL (SELECT reflect('java.lang.System', 'getenv', 'PATH') AS x) AS l
FROM orders |> EXTEND reflect('java.lang.System', 'getenv', 'PATH') AS x
FROM orders |> WHERE reflect('java.lang.System', 'getenv', 'PATH') IS NOT NULL |> SELECT order_id
SELECT transform(tags, t -> reflect('java.lang.String', 'valueOf', t)) AS x FROM orders
SELECT CASE WHEN amount > 1 THEN reflect('java.lang.System', 'getenv', 'PATH') END AS x FROM orders
SELECT named_struct('a', reflect('java.lang.System', 'getenv', 'PATH')) AS x FROM orders
SELECT map('a', array(reflect('java.lang.System', 'getenv', 'PATH'))) AS x FROM orders
SELECT count(*) FILTER (WHERE reflect('java.lang.System', 'getenv', 'PATH') = 'x') AS n FROM orders
SELECT listagg(customer, ',') WITHIN GROUP (ORDER BY reflect('java.lang.System', 'getenv', 'PATH')) AS n FROM orders
SELECT sum(amount) OVER (PARTITION BY reflect('java.lang.System', 'getenv', 'PATH')) AS n FROM orders
SELECT sum(amount) OVER w AS n FROM orders WINDOW w AS (PARTITION BY reflect('java.lang.System', 'getenv', 'PATH'))
SELECT sum(amount) OVER w AS n FROM (SELECT * FROM orders WINDOW w AS (ORDER BY reflect('a', 'b'))) AS o WINDOW w AS (ORDER BY amount)
SELECT o.order_id FROM orders o JOIN others p ON reflect('java.lang.System', 'getenv', 'PATH') = p.note
SELECT * FROM VALUES (1, reflect('java.lang.System', 'getenv', 'PATH')) AS v(a, b)
SELECT * FROM orders PIVOT (sum(length(reflect('a', 'b'))) FOR customer IN ('x'))
SELECT order_id FROM orders ORDER BY reflect('java.lang.System', 'getenv', 'PATH')
SELECT order_id FROM orders GROUP BY order_id, reflect('java.lang.System', 'getenv', 'PATH')
SELECT order_id FROM orders GROUP BY order_id HAVING reflect('java.lang.System', 'getenv', 'PATH') = 'x'
SELECT order_id FROM orders LIMIT length(reflect('java.lang.System', 'getenv', 'PATH'))
SELECT from_json(customer, reflect('java.lang.System', 'getenv', 'PATH')) AS x FROM orders
SELECT order_id FROM orders LATERAL VIEW stack(1, reflect('java.lang.System', 'getenv', 'PATH')) t AS x
SELECT order_id FROM orders, explode(array(reflect('java.lang.System', 'getenv', 'PATH'))) AS t(x)
-- says: reflect
SELECT order_id, x FROM orders LATERAL VIEW reflect('java.lang.System', 'getenv', 'PATH') t AS x
SELECT order_id FROM orders, reflect('java.lang.System', 'getenv', 'PATH') AS t(x)
SELECT system.builtin.reflect('java.lang.System', 'getenv', 'PATH') AS x FROM orders
SELECT builtin.reflect('java.lang.System', 'getenv', 'PATH') AS x FROM orders

-- class: processes
-- says: TRANSFORM … USING
SELECT TRANSFORM (order_id) USING 'id' AS (x) FROM orders
SELECT * FROM (SELECT TRANSFORM (order_id) USING 'touch /tmp/x' AS (x) FROM orders) AS a
WITH a AS (SELECT TRANSFORM (order_id) USING 'id' AS (x) FROM orders) SELECT * FROM a
FROM orders SELECT TRANSFORM (order_id) USING 'id' AS (x)
SELECT order_id FROM orders UNION ALL SELECT TRANSFORM (order_id) USING 'id' AS (x) FROM others

-- class: files that are read
-- says: names have one part here
SELECT * FROM text.`/etc/passwd`
SELECT * FROM csv.`/etc/passwd`
SELECT * FROM binaryFile.`/etc/passwd`
SELECT * FROM json.`file:///etc/passwd`
SELECT order_id FROM orders UNION ALL SELECT value FROM text.`/etc/passwd`
SELECT order_id FROM orders WHERE customer IN (SELECT value FROM text.`/etc/passwd`)
WITH a AS (SELECT * FROM text.`/etc/passwd`) SELECT * FROM a
SELECT * FROM orders o, LATERAL (SELECT * FROM text.`/etc/passwd`) AS l
FROM text.`/etc/passwd` |> SELECT value
TABLE text.`/etc/passwd`
-- says: it may read files of the machine
SELECT from_avro(tags[0], '{"type": "string"}') AS x FROM orders
SELECT from_protobuf(customer, 'Person', '/etc/passwd') AS x FROM orders
SELECT to_protobuf(struct(*), 'Person', '/etc/passwd') AS x FROM orders
-- says: may grow without bound
SELECT from_xml(customer, 'a INT') AS x FROM orders
SELECT xpath_string(customer, '/a/b') AS x FROM orders

-- class: files that are written
-- says: this is a command
INSERT OVERWRITE DIRECTORY '/tmp/waybill-attack' USING csv SELECT reflect('java.lang.System', 'getenv', 'PATH')
INSERT OVERWRITE LOCAL DIRECTORY '/tmp/waybill-attack' USING csv SELECT order_id FROM orders
WITH a AS (SELECT 1 AS x) INSERT OVERWRITE DIRECTORY '/tmp/waybill-attack' USING csv SELECT * FROM a
FROM orders INSERT OVERWRITE DIRECTORY '/tmp/waybill-attack' USING csv SELECT order_id
CREATE TABLE made USING csv LOCATION '/tmp/waybill-attack' AS SELECT 1 AS x
INSERT INTO made SELECT * FROM orders
INSERT OVERWRITE TABLE made SELECT * FROM orders
FROM orders INSERT INTO made SELECT order_id INSERT INTO other SELECT customer
MERGE INTO made USING orders ON made.a = orders.order_id WHEN MATCHED THEN DELETE
UPDATE made SET a = 1
DELETE FROM made
LOAD DATA INPATH '/etc/passwd' INTO TABLE made
TRUNCATE TABLE made

-- class: settings, jars and functions
-- says: this is a command
SET spark.sql.runSQLOnFiles = true
SET
RESET
SET TIME ZONE 'Europe/Berlin'
SET CATALOG spark_catalog
SET VAR x = 1
ADD JAR '/tmp/evil.jar'
ADD FILE '/etc/passwd'
LIST JARS
CREATE FUNCTION evil AS 'java.lang.Runtime' USING JAR '/tmp/evil.jar'
CREATE TEMPORARY FUNCTION f() RETURNS INT RETURN 1
CREATE TEMPORARY VIEW v USING text OPTIONS (path '/etc/passwd')
CREATE OR REPLACE TEMPORARY VIEW orders AS SELECT 1 AS order_id
DROP VIEW orders
CACHE TABLE c AS SELECT * FROM orders
CLEAR CACHE
REFRESH '/etc'
USE other
ANALYZE TABLE orders COMPUTE STATISTICS
DECLARE VARIABLE x INT DEFAULT 1
CALL system.rollback_to_snapshot('a', 1)
ALTER TABLE a SET TBLPROPERTIES ('x' = 'y')
COMMENT ON TABLE a IS 'x'
SHOW FUNCTIONS
SHOW TABLES
DESCRIBE QUERY SELECT 1
DESCRIBE FUNCTION reflect
EXPLAIN EXTENDED SELECT 1

-- class: scripts and dynamic SQL
-- says: this is a command
EXECUTE IMMEDIATE 'SELECT reflect("a", "b")'
BEGIN SELECT 1; END
BEGIN DECLARE x INT; SET x = 1; END
-- says: IDENTIFIER
SELECT * FROM IDENTIFIER('text.`/etc/passwd`')
SELECT * FROM IDENTIFIER(concat('text.', '`/etc/passwd`'))
SELECT IDENTIFIER('reflect')('java.lang.System', 'getenv', 'PATH') AS x FROM orders
SELECT IDENTIFIER('order_id') AS x FROM orders
WITH a AS (SELECT * FROM IDENTIFIER('x')) SELECT * FROM a
-- says: a parameter
SELECT order_id FROM orders WHERE customer = :name
SELECT order_id FROM orders WHERE customer = ?

-- class: other tables
-- says: no view is called
SELECT * FROM secrets
SELECT order_id FROM orders UNION ALL SELECT a FROM secrets
SELECT * FROM (SELECT * FROM secrets) AS s
-- says: names have one part here
SELECT * FROM spark_catalog.default.secrets
SELECT * FROM lakehouse.raw.orders
SELECT * FROM lakehouse.raw.orders.snapshots
SELECT * FROM default.orders
-- says: VERSION or TIMESTAMP AS OF
SELECT * FROM orders VERSION AS OF 3
SELECT * FROM orders TIMESTAMP AS OF '2026-01-01'
-- says: every input is a stream here
SELECT * FROM STREAM orders
-- says: no function is called
SELECT * FROM my_function(TABLE(orders))
SELECT * FROM read_files('/etc')
-- says: makes no rows of its own
SELECT * FROM range(10)
SELECT o.order_id FROM orders o, range(1000000000000) AS r
-- says: it depends on the machine
SELECT * FROM sql_keywords()
SELECT * FROM collations()
SELECT * FROM python_worker_logs()

-- class: denial of service
-- says: 10000
SELECT repeat('x', 100000000) AS x FROM orders
SELECT repeat(repeat('x', 10000), 10000) AS x FROM orders
SELECT space(2000000000) AS x FROM orders
SELECT lpad('x', 100000000, 'y') AS x FROM orders
SELECT rpad('x', 10 * 10000000) AS x FROM orders
SELECT array_repeat(customer, 1000000000) AS x FROM orders
SELECT sequence(1, 1000000) AS x FROM orders
SELECT transform(sequence(1, 10000), a -> sequence(1, 10000)) AS x FROM orders
SELECT order_id FROM orders LATERAL VIEW explode(sequence(1, 10000)) a AS x LATERAL VIEW explode(sequence(1, 10000)) b AS y
SELECT array_insert(tags, 1000000000, 'x') AS x FROM orders
SELECT format_string('%1000000000d', 1) AS x FROM orders
SELECT format_number(amount, 100000000) AS x FROM orders
SELECT order_id FROM orders LATERAL VIEW stack(1000000, 1) t AS x
-- says: constant
SELECT repeat(customer, order_id) AS x FROM orders
SELECT sequence(1, order_id) AS x FROM orders
SELECT space(length(customer)) AS x FROM orders
SELECT order_id FROM orders WHERE customer RLIKE customer
SELECT regexp_replace(customer, customer, '') AS x FROM orders
SELECT split(customer, tags[0]) AS x FROM orders
SELECT format_string(customer, 1) AS x FROM orders
SELECT lpad(customer, CAST('100000000' AS INT)) AS x FROM orders
-- says: a hint
SELECT /*+ REPARTITION(10000) */ order_id FROM orders
SELECT /*+ BROADCAST(orders) */ order_id FROM orders
WITH a AS (SELECT /*+ COALESCE(1) */ * FROM orders) SELECT * FROM a

-- class: information
-- says: it depends on the machine
SELECT current_user() AS x FROM orders
SELECT current_user AS x FROM orders
SELECT session_user AS x FROM orders
SELECT user() AS x FROM orders
SELECT version() AS x FROM orders
SELECT current_catalog() AS x FROM orders
SELECT current_database() AS x FROM orders
SELECT current_timezone() AS x FROM orders
SELECT input_file_name() AS x FROM orders
SELECT spark_partition_id() AS x FROM orders

-- class: other rows when a batch is run again
-- says: when a batch is run again
SELECT uuid() AS x FROM orders
SELECT rand() AS x FROM orders
SELECT order_id FROM orders WHERE random() < 0.5
SELECT randn(3) AS x FROM orders
SELECT randstr(10) AS x FROM orders
SELECT uniform(1, 10) AS x FROM orders
SELECT shuffle(tags) AS x FROM orders
SELECT monotonically_increasing_id() AS x FROM orders
SELECT aes_encrypt(customer, '0000111122223333') AS x FROM orders
SELECT order_id FROM orders TABLESAMPLE (10 PERCENT)
FROM orders |> TABLESAMPLE (10 PERCENT)

-- class: a pipeline that ends
-- says: it ends the pipeline at a record
SELECT raise_error('x') AS x FROM orders
SELECT assert_true(amount > 1) AS x FROM orders
SELECT if(amount > 1, raise_error('x'), 1) AS x FROM orders

-- class: options of a library
-- says: is not accepted as an option
SELECT from_csv(customer, 'a INT', map('maxColumns', '2000000000')) AS x FROM orders
SELECT from_csv(customer, 'a INT', map('sep', ';', 'MAXCHARSPERCOLUMN', '-1')) AS x FROM orders
SELECT to_json(struct(order_id), map('path', '/tmp/x')) AS x FROM orders
SELECT to_csv(struct(order_id), map('maxColumns', '9')) AS x FROM orders
SELECT schema_of_csv('1', map('inputBufferSize', '9')) AS x FROM orders
SELECT schema_of_json('{}', map('maxNestingDepth', '9')) AS x FROM orders
SELECT from_json(customer, 'a INT', map('maxNumLen', '9')) AS x FROM orders
SELECT from_json(customer, 'a INT', map('mode', 'FAILFAST', 'maxStringLen', '9')) AS x FROM orders

-- class: options of a library
-- says: the name of an option must be a constant
SELECT from_json(customer, 'a INT', map(concat('max', 'StringLen'), '9')) AS x FROM orders
