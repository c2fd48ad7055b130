-- Messages are found by what is equal to a reader: in full width, with accents as characters of their own, in capitals
-- of Greek and Turkish, with signs that nobody sees.

-- What the index has of a message, as before, except that its text is that of `plain_search`. No function of ours may be
-- called here: indexes are made without a search path.
CREATE FUNCTION message_keys_next(id text, workspace_id text, contact_id text, said text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE COST 1000 AS $$
DECLARE
    prefix text := substr(id, 6, 3)
        || translate(substr(id, 9, 1), '0123456789abcdefghjkmnpqrstvwxyz', '00001111222233334444555566667777')
        || right(workspace_id, 5);
    plain text := lower(left(coalesce(said, ''), 4096) COLLATE "default");
    word text;
    words text[] := '{}';
BEGIN
    IF octet_length(plain) = char_length(plain) THEN
        words := regexp_split_to_array(plain, '[^0-9a-z]+');
        IF plain ~ '[0-9a-z]{41}' THEN
            words := ARRAY(SELECT left(long, 40) FROM unnest(words) AS long);
        END IF;
    ELSE
        plain := translate(
            replace(lower(normalize(plain, NFKC) COLLATE "default"), U&'\00df', 'ss'),
            U&'\03c2\0130\03ac\03ad\03ae\03af\03cc\03cd\03ce\0390\03b0\0307\00ad\200b\200c\200d'
                '\200e\200f\202a\202b\202c\202d\202e\2060\2066\2067\2068\2069\fe0f\feff',
            U&'\03c3i\03b1\03b5\03b7\03b9\03bf\03c5\03c9\03ca\03cb');
        FOREACH word IN ARRAY regexp_split_to_array(
            regexp_replace(plain,
                '([\u0e00-\u109f\u1780-\u17ff\u2600-\u27bf\u3005-\u3007\u3021-\u3029\u3031-\u30ff\u31f0-\u31ff'
                '\u3400-\u9fff\uf900-\ufaff\uff66-\uff9d\U0001f000-\U0001faff\U00020000-\U0003ffff]+)',
                E' \x01\\1 ', 'g'),
            '[\u0002-\u002f\u003a-\u0060\u007b-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb\u00bf\u00d7\u00f7'
            '\u055a-\u055f\u0589\u05be\u05c0\u05c3\u05f3\u05f4\u060c\u061b\u061f\u066a-\u066d\u06d4\u0964\u0965'
            '\u1361-\u1368\u2000-\u206f\u20a0-\u20bf\u2116\u2122\u2190-\u25ff\u2e00-\u2e7f\u3000-\u3004'
            '\u3008-\u3020\u302a-\u3030\ufe00-\ufe6f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65'
            '\ufff0-\uffff]+')
        LOOP
            IF left(word, 1) = E'\x01' THEN
                FOR place IN 2 .. char_length(word) LOOP
                    words := words || substr(word, place, 2);
                END LOOP;
            ELSE
                words := words || left(word, 40);
            END IF;
        END LOOP;
    END IF;
    RETURN array_to_tsvector(string_to_array(
        prefix || '@' || right(contact_id, 10)
            || E'\n' || prefix || array_to_string(array_remove(words, ''), E'\n' || prefix), E'\n'));
END
$$;

-- A search would scan a pending list once for every time. Until the new index is complete, searches use the former keys
-- and their index. Then they change over at once.
CREATE INDEX messages_words_next ON messages USING gin (message_keys_next(id, workspace_id, contact_id, text))
    WITH (fastupdate = off) WHERE text IS NOT NULL;
DROP INDEX messages_words;
DROP FUNCTION message_keys;
ALTER FUNCTION message_keys_next RENAME TO message_keys;
ALTER INDEX messages_words_next RENAME TO messages_words;
