-- Searches for contacts ignore differences that a reader does not see, in names and tags: full width, a final sigma,
-- invisible characters.

-- The part of a text that a search compares. Its letters are lower-case, except those that normalization introduces
-- (℡). Drops Greek accents and the dot of the Turkish capital I, because capitals are written without them.
CREATE FUNCTION plain_search(said text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(said) = char_length(said) THEN said ELSE translate(
        replace(lower(normalize(said, NFKC)), U&'\00df', 'ss'),
        U&'\03c2\0130\03ac\03ad\03ae\03af\03cc\03cd\03ce\0390\03b0\0307\00ad\200b\200c\200d'
                '\200e\200f\202a\202b\202c\202d\202e\2060\2066\2067\2068\2069\fe0f\feff',
        U&'\03c3i\03b1\03b5\03b7\03b9\03bf\03c5\03c9\03ca\03cb') END
$$;

-- The search keys of a contact. As before, except that they use `plain_search`, and that more characters may fold into
-- ASCII or change the character before them: see TURNING_ASCII in app/domain/segments/translations.py. Must not call
-- our own functions, because indexes are built without a search path.
CREATE FUNCTION contact_keys_next(workspace_id text, segment integer, search text, tags text[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
DECLARE
    seed bigint := hashtextextended(workspace_id, segment) << 32;
    keys bigint[] := '{}';
    said text := search;
    tag text;
    folded text;
BEGIN
    IF octet_length(said) <> char_length(said) THEN
        said := translate(
            replace(lower(normalize(said, NFKC)), U&'\00df', 'ss'),
            U&'\03c2\0130\03ac\03ad\03ae\03af\03cc\03cd\03ce\0390\03b0\0307\00ad\200b\200c\200d'
                '\200e\200f\202a\202b\202c\202d\202e\2060\2066\2067\2068\2069\fe0f\feff',
            U&'\03c3i\03b1\03b5\03b7\03b9\03bf\03c5\03c9\03ca\03cb');
    END IF;
    FOR place IN 1 .. char_length(said) - 1 LOOP
        keys := keys || (seed # (hashtextextended(substr(said, place, 2), 0) & 4294967295))
            || (seed # (hashtextextended(substr(said, place, 3), 0) & 4294967295));
    END LOOP;
    FOREACH tag IN ARRAY tags LOOP
        folded := tag;
        IF octet_length(tag) <> char_length(tag) THEN
            keys := keys || (seed # (hashtextextended(tag, 2) & 4294967295));
            folded := CASE
                WHEN tag ~ U&'[\0085\00a0\00a8\00aa\00ad\00af\00b2-\00b4\00b8-\00ba\00bc-\00be\00df\0130\0132\0133\013f'
                    '\0140\0149\017f\01c4-\01cc\01f1-\01f3\02b0\02b2\02b3\02b7\02b8\02d8-\02dd\02e1-\02e3'
                    '\0300-\0304\0306-\030c\030f\0311\031b\0323-\0328\032d\032e\0330\0331\0338\0340\0341\0344'
                    '\037a\037e\0384\0385\0600-\0605\061c\06dd\070f\0890\0891\08e2\1680\180e\1d2c-\1d65'
                    '\1d9c-\1dbb\1e9a\1e9e\1fbd\1fbf-\1fc1\1fcd-\1fcf\1fdd-\1fdf\1fed-\1fef\1ffd\1ffe\2000-\200f'
                    '\2017\2024-\2026\2028-\20a8\2100-\2189\2460-\24ea\2a74-\2a76\2c7c\2c7d\3000\309b\309c'
                    '\3200-\325f\32b1-\32cf\3358-\33ff\a7f2-\a7f4\fb00-\fb29\fc5e-\fc63\fdfa-\fe7e\feff-\ff5e'
                    '\ffe3-\fffb\+0107a5\+0110bd-\+0110cd\+013430-\+013438\+01bca0-\+01bca3\+01d173-\+01d17a'
                    '\+01d400-\+01d6a3\+01d7ce-\+01d7ff\+01f100-\+01f190\+01fbf0-\+01fbf9\+0e0001-\+0e007f]'
                THEN U&'\00df' ELSE regexp_replace(tag, '[^\x01-\x7f]', '', 'g') END;
        END IF;
        folded := lower(btrim(folded, E' \t\n\x0b\f\r\x1c\x1d\x1e\x1f') COLLATE "C");
        keys := keys || (seed # (hashtextextended(folded, 1) & 4294967295));
    END LOOP;
    RETURN keys;
END
$$;

-- Searches use the old keys and their index until the new index is complete. Then both are replaced at once.
CREATE INDEX contacts_keys_next ON contacts USING gin (contact_keys_next(workspace_id, segment, search, tags))
    WITH (gin_pending_list_limit = 256);
DROP INDEX contacts_keys;
DROP FUNCTION contact_keys;
ALTER FUNCTION contact_keys_next RENAME TO contact_keys;
ALTER INDEX contacts_keys_next RENAME TO contacts_keys;

-- The keys that a search looks up. As before, except that they use `plain_search`.
CREATE OR REPLACE FUNCTION contact_keys_sought(workspace_id text, segment integer, sought text, tags text[])
RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    seed bigint := hashtextextended(workspace_id, segment) << 32;
    said text := plain_search(sought);
    length integer := char_length(said);
    keys bigint[] := contact_keys(workspace_id, segment, '', tags);
BEGIN
    FOR place IN 1 .. length BY greatest(3, (length + 9) / 10) LOOP
        keys := keys
            || (seed # (hashtextextended(substr(said, least(place, greatest(length - 2, 1)), 3), 0) & 4294967295));
    END LOOP;
    RETURN keys;
END
$$;
