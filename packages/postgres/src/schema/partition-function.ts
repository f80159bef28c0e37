/** The function by which workers make partitions. Pure. */

/**
 * `make_partition` creates the partition of a month with the rights of the schema's owner, so that workers can do it,
 * who may not create tables. It attaches a finished table: that locks only the default partition, so appends to other
 * partitions go on. It gives up at once if somebody else is doing it or uses the default partition.
 */
export function partitionFunction(schema: string): string {
  const inText = schema.replaceAll("'", "''");
  return `
    CREATE FUNCTION ${schema}.make_partition(month date) RETURNS boolean
      LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '50ms' AS $make$
      DECLARE
        first date := date_trunc('month', month);
        name text := 'lines_' || to_char(first, 'YYYY_MM');
        low uuid := (rpad(lpad(to_hex((extract(epoch FROM first::timestamp) * 1000)::bigint), 12, '0'), 32, '0'))::uuid;
        high uuid := (rpad(lpad(to_hex((extract(epoch FROM (first + interval '1 month')::timestamp) * 1000)::bigint), 12, '0'), 32, '0'))::uuid;
        is_used boolean;
      BEGIN
        -- Workers can call this: no partitions that no session will ever need.
        IF first < date '2020-01-01' OR first > current_date + interval '10 years' THEN RETURN false; END IF;
        IF to_regclass('${inText}.' || name) IS NOT NULL THEN RETURN false; END IF;
        IF NOT pg_try_advisory_xact_lock(${UPKEEP_LOCK}) THEN RETURN false; END IF;
        -- A month whose first lines are in the default partition stays there.
        EXECUTE 'SELECT EXISTS (SELECT FROM ${inText}.lines_other WHERE place >= $1 AND place < $2)' INTO is_used USING low, high;
        IF is_used THEN RETURN false; END IF;
        EXECUTE 'CREATE TABLE ${inText}.' || name || ' (LIKE ${inText}.lines INCLUDING ALL)';
        EXECUTE format('ALTER TABLE ${inText}.lines ATTACH PARTITION ${inText}.%I FOR VALUES FROM (%L) TO (%L)', name, low, high);
        RETURN true;
      END $make$;
    REVOKE ALL ON FUNCTION ${schema}.make_partition(date) FROM PUBLIC;
    DO $rights$ DECLARE worker text; BEGIN
      FOR worker IN SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
        FROM pg_class, aclexplode(relacl) WHERE oid = '${inText}.lines'::regclass AND privilege_type = 'INSERT' AND grantee <> relowner
      LOOP EXECUTE 'GRANT EXECUTE ON FUNCTION ${inText}.make_partition(date) TO ' || worker; END LOOP; END $rights$;`;
}

/** An arbitrary lock number (`part`, in hexadecimal): one worker at a time creates partitions. */
const UPKEEP_LOCK = 0x70617274;
