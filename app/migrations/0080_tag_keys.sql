-- Tags are found by index as conditions compare them: without regard to case and to spaces at their ends.

-- The search keys of a contact, as before, except that the key of a tag is that of its ASCII letters in lower case. So
-- tags that a condition takes for equal share a key. Those with characters that may fold into ASCII ('ß' into 'ss', see
-- TURNING_ASCII in app/domain/segments/translations.py) all have the key of 'ß'. A tag beyond ASCII has a second key, of
-- exactly this tag, so that filters by tag look at few others.
CREATE FUNCTION contact_keys_next(workspace_id text, segment integer, search text, tags text[]) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
DECLARE
    seed bigint := hashtextextended(workspace_id, segment) << 32;
    keys bigint[] := '{}';
    tag text;
    folded text;
BEGIN
    FOR place IN 1 .. char_length(search) - 1 LOOP
        keys := keys || (seed # (hashtextextended(substr(search, place, 2), 0) & 4294967295))
            || (seed # (hashtextextended(substr(search, place, 3), 0) & 4294967295));
    END LOOP;
    FOREACH tag IN ARRAY tags LOOP
        folded := tag;
        IF octet_length(tag) <> char_length(tag) THEN
            keys := keys || (seed # (hashtextextended(tag, 2) & 4294967295));
            folded := CASE
                WHEN tag ~ U&'[\0085\00a0\00df\0130\0149\017f\01f0\1680\1e96-\1e9a\1e9e\2000-\200a\2028\2029\202f\205f\212a\3000\fb00-\fb06]'
                THEN U&'\00df' ELSE regexp_replace(tag, '[^\x01-\x7f]', '', 'g') END;
        END IF;
        folded := lower(btrim(folded, E' \t\n\x0b\f\r\x1c\x1d\x1e\x1f') COLLATE "C");
        keys := keys || (seed # (hashtextextended(folded, 1) & 4294967295));
    END LOOP;
    RETURN keys;
END
$$;

-- Until the new index is complete, searches use the former keys and their index. Then they change over at once.
CREATE INDEX contacts_keys_next ON contacts USING gin (contact_keys_next(workspace_id, segment, search, tags))
    WITH (gin_pending_list_limit = 256);
DROP INDEX contacts_keys;
DROP FUNCTION contact_keys;
ALTER FUNCTION contact_keys_next RENAME TO contact_keys;
ALTER INDEX contacts_keys_next RENAME TO contacts_keys;
