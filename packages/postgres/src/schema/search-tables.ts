/** The tables of the full-text index. Pure. */

/**
 * `texts_sessions` says how far each session is indexed, `texts_messages` what is hidden. `texts` has the stretches
 * themselves: as people see them, and as words with spaces around them, to find phrases. Everything is derived: you can
 * `TRUNCATE` these tables at any time, and the next search fills them.
 */
export function searchTables(schema: string): string {
  return `
    CREATE TABLE ${schema}.texts_sessions (
      key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      id uuid NOT NULL UNIQUE,
      seq bigint NOT NULL,
      crc text NOT NULL,
      head bigint NOT NULL,
      at text COLLATE "C" NOT NULL,
      dialect text,
      blind boolean NOT NULL
    );
    CREATE TABLE ${schema}.texts_gone (key bigint PRIMARY KEY);
    CREATE TABLE ${schema}.texts_messages (
      session bigint NOT NULL,
      id text COLLATE "C" NOT NULL,
      seq bigint,
      step text COLLATE "C",
      hidden boolean NOT NULL,
      PRIMARY KEY (session, id)
    );
    CREATE INDEX texts_hidden ON ${schema}.texts_messages (session, step) WHERE hidden;
    CREATE TABLE ${schema}.texts (
      session bigint NOT NULL,
      seq bigint NOT NULL,
      stretch integer NOT NULL,
      said text COLLATE "C" NOT NULL,
      message text NOT NULL,
      text text NOT NULL,
      words text COLLATE "C" NOT NULL,
      lexemes tsvector NOT NULL,
      PRIMARY KEY (session, seq, stretch)
    );
    CREATE INDEX texts_by_word ON ${schema}.texts USING gin (lexemes);`;
}

/** The part of a word that the index holds; the rest is compared as text. */
export const LEXEME_CHARACTERS = 256;

/**
 * The words are no longer stored a second time as lexemes: only the index holds those. It is emptied, so that nothing
 * is built while the tables are locked; the next search fills it again.
 *
 * `texts_changes` names sessions that may have changed since they were indexed. Triggers fill it when a session is
 * settled (closed, or left by a dead writer), deleted or restored, whatever the version of the worker that did it. The
 * triggers only insert, so no writer waits for a search. `texts_sweep` says how far the first search has come.
 */
export function leanSearch(schema: string): string {
  return `
    TRUNCATE ${schema}.texts, ${schema}.texts_messages, ${schema}.texts_sessions, ${schema}.texts_gone;
    ALTER TABLE ${schema}.texts DROP COLUMN lexemes;
    CREATE FUNCTION ${schema}.lexemes(words text) RETURNS tsvector LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000
      AS 'SELECT array_to_tsvector(ARRAY(SELECT left(word, ${LEXEME_CHARACTERS}) FROM string_to_table(words, '' '') AS word WHERE word <> ''''))';
    GRANT EXECUTE ON FUNCTION ${schema}.lexemes(text) TO PUBLIC;
    CREATE INDEX texts_by_word ON ${schema}.texts USING gin (${schema}.lexemes(words));
    CREATE INDEX texts_blind ON ${schema}.texts_sessions (id) WHERE blind;
    CREATE INDEX texts_cut ON ${schema}.texts_sessions (at DESC, id DESC) WHERE cut;
    CREATE TABLE ${schema}.texts_changes (n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id uuid NOT NULL);
    CREATE TABLE ${schema}.texts_sweep (one boolean PRIMARY KEY DEFAULT true CHECK (one), done bigint NOT NULL, below uuid NOT NULL, claimed timestamptz);
    ${rightsLike(schema, "texts_gone", ["texts_changes", "texts_sweep"])}
    CREATE FUNCTION ${schema}.note_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog
      AS 'BEGIN EXECUTE format(''INSERT INTO %I.texts_changes (id) VALUES ($1)'', TG_TABLE_SCHEMA) USING NEW.id; RETURN NULL; END';
    CREATE TRIGGER note_new AFTER INSERT ON ${schema}.catalogue FOR EACH ROW WHEN (NEW.closed) EXECUTE FUNCTION ${schema}.note_change();
    CREATE TRIGGER note_settled AFTER UPDATE OF closed ON ${schema}.catalogue FOR EACH ROW
      WHEN (NEW.closed AND (NOT OLD.closed OR OLD.head <> NEW.head)) EXECUTE FUNCTION ${schema}.note_change();
    CREATE TRIGGER note_trashed AFTER UPDATE OF trashed ON ${schema}.heads FOR EACH ROW
      WHEN (OLD.trashed IS DISTINCT FROM NEW.trashed) EXECUTE FUNCTION ${schema}.note_change();`;
}

/** Gives everybody who has rights on a table the same rights on new ones, so that `grants` need not run again. */
export function rightsLike(schema: string, table: string, others: readonly string[]): string {
  const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
  return `DO $rights$ DECLARE held record; other text; BEGIN
      FOR held IN SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END AS role, privilege_type
        FROM pg_class, aclexplode(relacl) WHERE oid = ${literal(`${schema}.${table}`)}::regclass AND grantee <> relowner
      LOOP
        FOREACH other IN ARRAY ARRAY[${others.map(literal).join(", ")}] LOOP
          EXECUTE format('GRANT %s ON %s.%I TO %s', held.privilege_type, ${literal(schema)}, other, held.role);
        END LOOP;
      END LOOP; END $rights$;`;
}
