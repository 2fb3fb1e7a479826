-- What must pass the guard, one query in a line. `says` is what the check for stages without state says of a line all
-- the same; without it the line is taken.
-- The views are those of a stage: `orders` and `others`.

-- columns and expressions
SELECT * FROM orders
SELECT order_id FROM orders
SELECT o.order_id AS id, o.customer FROM orders AS o
SELECT * EXCEPT (tags) FROM orders
SELECT orders.* FROM orders
SELECT `order_id` AS `an id` FROM `orders`
SELECT order_id + 1 AS a, order_id - 1 AS b, order_id * 2 AS c, order_id / 2 AS d, order_id % 2 AS e, order_id DIV 2 AS f, -order_id AS g FROM orders
SELECT order_id & 1 AS a, order_id | 1 AS b, order_id ^ 1 AS c, ~order_id AS d, order_id << 1 AS e, order_id >> 1 AS f, order_id >>> 1 AS g FROM orders
SELECT order_id FROM orders WHERE amount > 1 AND amount < 9 OR NOT amount = 3
SELECT order_id FROM orders WHERE amount BETWEEN 1 AND 2
SELECT order_id FROM orders WHERE customer IN ('a', 'b') AND order_id NOT IN (1, 2)
SELECT order_id FROM orders WHERE customer IS NULL OR amount IS NOT NULL
SELECT order_id FROM orders WHERE (amount > 1) IS TRUE AND (amount > 1) IS NOT FALSE AND (amount > 1) IS NOT UNKNOWN
SELECT order_id FROM orders WHERE customer <=> 'a' OR customer IS DISTINCT FROM 'b'
SELECT order_id FROM orders WHERE customer <> 'a' AND customer != 'b' AND customer == 'c'
SELECT CASE WHEN amount > 1 THEN 'big' WHEN amount > 0 THEN 'small' ELSE 'none' END AS a, CASE customer WHEN 'a' THEN 1 ELSE 2 END AS b FROM orders
SELECT if(amount > 1, 1, 0) AS a, nvl(customer, 'x') AS b, coalesce(customer, 'y') AS c, nullif(customer, '') AS d, ifnull(amount, 0) AS e FROM orders
SELECT greatest(order_id, 1) AS a, least(order_id, 1) AS b FROM orders
SELECT CAST(order_id AS STRING) AS a, amount::DOUBLE AS b, TRY_CAST(customer AS INT) AS c, string(order_id) AS d, int(amount) AS e FROM orders
SELECT 1 AS a, 1L AS b, 1.5 AS c, 1.5D AS d, 1e3 AS e, 'x' AS f, TRUE AS g, X'AB' AS h, 1.5BD AS i, r'\d' AS j FROM orders

-- strings
SELECT upper(customer) AS a, lower(customer) AS b, initcap(customer) AS c, length(customer) AS d FROM orders
SELECT trim(customer) AS a, trim(BOTH 'x' FROM customer) AS b, ltrim(customer) AS c, rtrim('x', customer) AS d, btrim(customer) AS e FROM orders
SELECT substring(customer, 1, 2) AS a, substring(customer FROM 1 FOR 2) AS b, left(customer, 1) AS c, right(customer, 1) AS d, substr(customer, 2) AS e FROM orders
SELECT concat(customer, '-', order_id) AS a, customer || 'x' AS b, concat_ws(',', tags) AS c FROM orders
SELECT replace(customer, 'a', 'b') AS a, translate(customer, 'ab', 'cd') AS b, overlay(customer PLACING 'x' FROM 1 FOR 1) AS c FROM orders
SELECT position('a' IN customer) AS a, instr(customer, 'a') AS b, locate('a', customer) AS c FROM orders
SELECT order_id FROM orders WHERE customer LIKE 'a%' AND customer NOT LIKE 'b/%' ESCAPE '/' AND customer ILIKE 'C%'
SELECT order_id FROM orders WHERE customer LIKE ANY ('a%', 'b%') OR customer LIKE ALL ('a%', '%b') OR customer NOT LIKE ANY ('c')
SELECT order_id FROM orders WHERE customer RLIKE '^a+$' OR regexp_like(customer, 'b')
SELECT regexp_replace(customer, '[0-9]+', '#') AS a, regexp_extract(customer, '(a)(b)', 1) AS b, regexp_extract_all(customer, '(a)', 1) AS c, regexp_count(customer, 'a') AS d FROM orders
SELECT split(customer, ',') AS a, split(customer, ',')[0] AS b, split_part(customer, ',', 1) AS c FROM orders
SELECT lpad(customer, 10, ' ') AS a, rpad(customer, 10) AS b, repeat('x', 3) AS c, space(2) AS d, lpad(order_id, 5 * 2, '0') AS e FROM orders
SELECT format_string('%05d %s', order_id, customer) AS a, format_number(amount, 2) AS b, printf('%s', customer) AS c FROM orders
SELECT md5(customer) AS a, sha2(customer, 256) AS b, sha1(customer) AS c, crc32(customer) AS d, hash(customer, order_id) AS e, xxhash64(customer) AS f FROM orders
SELECT base64(customer) AS a, unbase64(customer) AS b, hex(order_id) AS c, unhex('AB') AS d, encode(customer, 'UTF-8') AS e, decode(X'AB', 'UTF-8') AS f FROM orders
SELECT startswith(customer, 'a') AS a, endswith(customer, 'b') AS b, contains(customer, 'c') AS c, levenshtein(customer, 'd') AS d, soundex(customer) AS e FROM orders
SELECT mask(customer) AS a, ascii(customer) AS b, chr(65) AS c, reverse(customer) AS d, quote(customer) AS e, luhn_check(customer) AS f FROM orders
SELECT to_char(amount, '999.99') AS a, to_number('12', '99') AS b, try_to_number(customer, '99') AS c FROM orders
SELECT parse_url(customer, 'HOST') AS a, url_encode(customer) AS b, try_url_decode(customer) AS c FROM orders
SELECT customer COLLATE UTF8_LCASE AS a, collate(customer, 'UNICODE') AS b FROM orders
SELECT is_valid_utf8(customer) AS a, make_valid_utf8(customer) AS b FROM orders

-- numbers
SELECT round(amount, 1) AS a, bround(amount, 1) AS b, ceil(amount) AS c, floor(amount) AS d, abs(amount) AS e, sign(amount) AS f FROM orders
SELECT sqrt(order_id) AS a, pow(order_id, 2) AS b, ln(2) AS c, log10(order_id) AS d, exp(1) AS e, pi() AS f, e() AS g FROM orders
SELECT sin(1) AS a, cos(1) AS b, tan(1) AS c, atan2(1, 2) AS d, degrees(1) AS e, radians(1) AS f FROM orders
SELECT mod(order_id, 3) AS a, pmod(order_id, 3) AS b, factorial(3) AS c, bin(order_id) AS d, conv('ff', 16, 10) AS e, width_bucket(amount, 0, 10, 5) AS f FROM orders
SELECT CAST(amount AS DECIMAL(20, 4)) * CAST(3 AS DECIMAL(5, 2)) AS a, amount * 0.2 AS b, amount / 3 AS c FROM orders
SELECT try_add(order_id, 1) AS a, try_divide(amount, 0) AS b, try_multiply(order_id, 2) AS c, try_subtract(order_id, 1) AS d FROM orders
SELECT isnan(CAST(amount AS DOUBLE)) AS a, nanvl(CAST(amount AS DOUBLE), 0) AS b FROM orders

-- dates and times
SELECT current_timestamp() AS a, current_timestamp AS b, current_date() AS c, now() AS d, localtimestamp() AS e, unix_timestamp() AS f FROM orders
SELECT year(placed_at) AS a, month(placed_at) AS b, day(placed_at) AS c, hour(placed_at) AS d, minute(placed_at) AS e, second(placed_at) AS f FROM orders
SELECT quarter(placed_at) AS a, weekofyear(placed_at) AS b, dayofweek(placed_at) AS c, dayofyear(placed_at) AS d, dayname(placed_at) AS e, monthname(placed_at) AS f FROM orders
SELECT extract(YEAR FROM placed_at) AS a, date_part('week', placed_at) AS b, EXTRACT(SECOND FROM placed_at) AS c FROM orders
SELECT date_trunc('hour', placed_at) AS a, trunc(placed_at, 'MM') AS b, last_day(placed_at) AS c, next_day(placed_at, 'Mon') AS d FROM orders
SELECT date_add(placed_at, 1) AS a, date_sub(placed_at, 1) AS b, datediff(placed_at, DATE '2026-01-01') AS c, add_months(placed_at, 1) AS d, months_between(placed_at, DATE '2026-01-01') AS e FROM orders
SELECT placed_at + INTERVAL 1 DAY AS a, placed_at - INTERVAL '1-2' YEAR TO MONTH AS b, placed_at + INTERVAL '1 02:03' DAY TO MINUTE AS c FROM orders
SELECT timestampadd(HOUR, 1, placed_at) AS a, timestampdiff(MINUTE, placed_at, TIMESTAMP '2026-01-01 00:00:00') AS b, dateadd(DAY, 1, placed_at) AS c FROM orders
SELECT to_date(customer) AS a, to_timestamp(customer, 'yyyy-MM-dd') AS b, try_to_timestamp(customer) AS c, date_format(placed_at, 'yyyy-MM') AS d FROM orders
SELECT from_unixtime(order_id) AS a, to_unix_timestamp(placed_at) AS b, timestamp_millis(order_id) AS c, unix_millis(placed_at) AS d, timestamp_seconds(order_id) AS e FROM orders
SELECT from_utc_timestamp(placed_at, 'Europe/Berlin') AS a, to_utc_timestamp(placed_at, 'Asia/Tokyo') AS b, convert_timezone('UTC', 'Asia/Tokyo', TIMESTAMP_NTZ '2026-01-01 00:00:00') AS c FROM orders
SELECT make_date(2026, 1, 1) AS a, make_timestamp(2026, 1, 1, 0, 0, 0) AS b, placed_at + make_dt_interval(1) AS c, placed_at + make_ym_interval(1, 2) AS d FROM orders
SELECT DATE '2026-01-01' AS a, TIMESTAMP '2026-01-01 00:00:00' AS b, placed_at - TIMESTAMP '2026-01-01 00:00:00' AS c FROM orders

-- arrays, maps, structs
SELECT array(1, 2, 3) AS a, tags[0] AS b, element_at(tags, 1) AS c, try_element_at(tags, 9) AS d, get(tags, 0) AS e, size(tags) AS f, cardinality(tags) AS g FROM orders
SELECT array_contains(tags, 'a') AS a, array_position(tags, 'a') AS b, array_distinct(tags) AS c, array_remove(tags, 'a') AS d, array_sort(tags) AS e, sort_array(tags, false) AS f FROM orders
SELECT array_union(tags, array('x')) AS a, array_intersect(tags, array('x')) AS b, array_except(tags, array('x')) AS c, arrays_overlap(tags, array('x')) AS d, array_compact(tags) AS e FROM orders
SELECT slice(tags, 1, 2) AS a, flatten(array(tags, tags)) AS b, array_join(tags, ',') AS c, array_max(tags) AS d, array_min(tags) AS e, reverse(tags) AS f, array_append(tags, 'x') AS g FROM orders
SELECT sequence(1, 10) AS a, sequence(10, 1, -3) AS b, array_repeat('x', 3) AS c, arrays_zip(tags, array(1)) AS d, array_insert(tags, 1, 'x') AS e FROM orders
SELECT map('a', 1, 'b', 2) AS a, map('a', 1)['a'] AS b, map_keys(map('a', 1)) AS c, map_values(map('a', 1)) AS d, map_entries(map('a', 1)) AS e FROM orders
SELECT map_from_arrays(array('a'), array(1)) AS a, map_concat(map('a', 1), map('b', 2)) AS b, map_contains_key(map('a', 1), 'a') AS c, str_to_map('a:1,b:2', ',', ':') AS d FROM orders
SELECT struct(order_id, customer) AS a, named_struct('x', order_id) AS b, struct(order_id AS y).y AS c, (order_id, customer) AS d FROM orders
SELECT named_struct('a', named_struct('b', order_id)).a.b AS x FROM orders

-- higher-order functions
SELECT transform(tags, t -> upper(t)) AS a, transform(tags, (t, i) -> concat(t, i)) AS b FROM orders
SELECT filter(tags, t -> t IS NOT NULL) AS a, exists(tags, t -> t = 'a') AS b, forall(tags, t -> t <> '') AS c FROM orders
SELECT aggregate(tags, 0, (n, t) -> n + length(t)) AS a, reduce(tags, '', (s, t) -> s || t, s -> upper(s)) AS b FROM orders
SELECT zip_with(tags, tags, (x, y) -> x || y) AS a, array_sort(tags, (x, y) -> CASE WHEN x < y THEN -1 WHEN x > y THEN 1 ELSE 0 END) AS b FROM orders
SELECT transform_values(map('a', 1), (k, v) -> v + 1) AS a, transform_keys(map('a', 1), (k, v) -> k || 'x') AS b, map_filter(map('a', 1), (k, v) -> v > 0) AS c, map_zip_with(map('a', 1), map('a', 2), (k, x, y) -> x + y) AS d FROM orders
SELECT transform(filter(tags, t -> length(t) > 1), t -> transform(split(t, ''), c -> upper(c))) AS a FROM orders

-- JSON, CSV, variants
SELECT from_json(customer, 'a INT, b STRING') AS a, from_json(customer, 'a INT').a AS b FROM orders
SELECT from_json(customer, schema_of_json('{"a": 1}')) AS a, get_json_object(customer, '$.a') AS b, json_object_keys(customer) AS c, json_array_length(customer) AS d FROM orders
SELECT to_json(struct(order_id, customer)) AS a, to_json(named_struct('a', tags), map('pretty', 'true')) AS b FROM orders
SELECT from_csv(customer, 'a INT, b STRING', map('sep', ';', 'mode', 'PERMISSIVE')) AS x FROM orders
SELECT from_json(customer, 'a INT', map('allowSingleQuotes', 'true', 'timestampFormat', 'yyyy')) AS x FROM orders
SELECT from_csv(customer, 'a INT, b STRING') AS a, to_csv(struct(order_id, customer)) AS b FROM orders
SELECT order_id, a, b FROM orders LATERAL VIEW json_tuple(customer, 'a', 'b') t AS a, b
SELECT CAST(parse_json(customer):a AS STRING) AS a, variant_get(parse_json(customer), '$.a', 'int') AS b, is_variant_null(parse_json(customer)) AS c FROM orders
SELECT to_json(try_parse_json(customer)) AS a FROM orders

-- rows out of one row
SELECT order_id, tag FROM orders LATERAL VIEW explode(tags) t AS tag
SELECT order_id, tag FROM orders LATERAL VIEW OUTER explode(tags) t AS tag
SELECT order_id, at, tag FROM orders LATERAL VIEW posexplode(tags) t AS at, tag
SELECT order_id, explode(tags) AS tag FROM orders
SELECT order_id, a, b FROM orders LATERAL VIEW inline(array(struct(1, 'x'), struct(2, 'y'))) t AS a, b
SELECT order_id, a FROM orders LATERAL VIEW stack(2, 1, 2) t AS a
SELECT order_id, t.tag FROM orders, LATERAL explode(tags) AS t(tag)
SELECT order_id, one, two FROM orders LATERAL VIEW explode(tags) a AS one LATERAL VIEW explode(split(one, ',')) b AS two
SELECT order_id, l.x FROM orders, LATERAL (SELECT order_id + 1 AS x) AS l

-- subqueries, CTEs, set operations, pipes
SELECT order_id FROM (SELECT order_id, amount FROM orders WHERE amount > 1) AS o WHERE order_id > 3
SELECT a FROM (SELECT b AS a FROM (SELECT c AS b FROM (SELECT order_id AS c FROM orders) AS z) AS y) AS x
WITH big AS (SELECT * FROM orders WHERE amount > 10) SELECT order_id FROM big
WITH a AS (SELECT order_id AS x FROM orders), b AS (SELECT x + 1 AS y FROM a) SELECT y FROM b
WITH a(x) AS (SELECT order_id FROM orders) SELECT x FROM a
WITH a AS (WITH b AS (SELECT order_id FROM orders) SELECT * FROM b) SELECT * FROM a
WITH Big AS (SELECT * FROM orders) SELECT order_id FROM BIG
SELECT order_id FROM orders UNION ALL SELECT order_id FROM others
FROM orders |> WHERE amount > 1 |> SELECT order_id
FROM orders |> EXTEND amount * 2 AS twice |> SET twice = twice + 1 |> DROP tags |> AS o |> WHERE o.twice > 3
FROM orders SELECT order_id WHERE amount > 1
TABLE orders

-- what needs state: the guard lets it pass, and the stage says that it takes none
-- says: GROUP BY
SELECT customer, count(*) AS n, sum(amount) AS s, avg(amount) AS a, min(amount) AS b, max(amount) AS c FROM orders GROUP BY customer
SELECT customer, count(DISTINCT order_id) AS n, count_if(amount > 1) AS m FROM orders GROUP BY customer HAVING count(*) > 1
SELECT customer, count(*) FILTER (WHERE amount > 1) AS n FROM orders GROUP BY ALL
SELECT customer, collect_list(order_id) AS a, collect_set(order_id) AS b, first(amount) AS c, any_value(amount) AS d FROM orders GROUP BY customer
SELECT customer, max_by(order_id, amount) AS a, stddev(amount) AS b, corr(amount, order_id) AS c, percentile(amount, 0.5) AS d FROM orders GROUP BY customer
SELECT customer, listagg(order_id, ',') WITHIN GROUP (ORDER BY order_id) AS n FROM orders GROUP BY customer
SELECT customer, percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) AS n FROM orders GROUP BY customer
SELECT window.start, count(*) AS n FROM orders GROUP BY window(placed_at, '5 minutes')
SELECT window(placed_at, '10 minutes', '5 minutes') AS w, count(*) AS n FROM orders GROUP BY 1
SELECT session_window(placed_at, '5 minutes') AS w, count(*) AS n FROM orders GROUP BY session_window(placed_at, '5 minutes')
SELECT count(*) AS n FROM orders WATERMARK placed_at DELAY OF INTERVAL 10 SECONDS GROUP BY window(placed_at, '1 minute')
FROM orders |> AGGREGATE sum(amount) AS s GROUP BY customer
SELECT customer, order_id, count(*) AS n FROM orders GROUP BY CUBE (customer, order_id)
SELECT customer, order_id, count(*) AS n FROM orders GROUP BY ROLLUP (customer, order_id)
SELECT customer, order_id, grouping(customer) AS g FROM orders GROUP BY GROUPING SETS ((customer), (order_id))
SELECT * FROM (SELECT customer, amount, order_id FROM orders) AS o PIVOT (sum(amount) FOR customer IN ('a', 'b'))
-- says: DISTINCT
SELECT DISTINCT customer FROM orders
SELECT order_id FROM orders UNION SELECT order_id FROM others
-- says: LIMIT
SELECT order_id FROM orders LIMIT 3
SELECT order_id FROM orders LIMIT 3 OFFSET 1
-- says: ORDER BY
SELECT order_id FROM orders ORDER BY amount DESC NULLS LAST
-- says: JOIN
SELECT o.order_id, p.note FROM orders o JOIN others p ON o.order_id = p.order_id
SELECT order_id, note FROM orders LEFT JOIN others USING (order_id)
SELECT o.order_id FROM orders o CROSS JOIN others p
SELECT o.order_id FROM orders o LEFT SEMI JOIN others p ON o.order_id = p.order_id
-- says: EXCEPT
SELECT order_id FROM orders EXCEPT SELECT order_id FROM others
-- says: INTERSECT
SELECT order_id FROM orders INTERSECT SELECT order_id FROM others
-- says: window function
SELECT row_number() OVER (PARTITION BY customer ORDER BY amount) AS n FROM orders
SELECT sum(amount) OVER w AS n, avg(amount) OVER w AS m FROM orders WINDOW w AS (PARTITION BY customer ORDER BY placed_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING)
SELECT rank() OVER (ORDER BY amount) AS a, lead(amount, 1) IGNORE NULLS OVER (ORDER BY amount) AS b FROM orders
-- says: subquery
SELECT order_id FROM orders WHERE order_id IN (SELECT order_id FROM others)
SELECT order_id FROM orders WHERE EXISTS (SELECT 1 FROM others WHERE others.order_id = orders.order_id)
SELECT order_id, (SELECT max(order_id) FROM others) AS m FROM orders
