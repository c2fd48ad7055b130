-- Search in the texts of messages: words and beginnings of words, newest first.

-- What the index has of a message: its words, in small letters, and its contact, each behind a prefix for its time and its
-- workspace. The time is the identifier's, in steps of 37 hours (2^27 ms): three of its characters, and three bits of the
-- next one. So a search reads nothing of other workspaces, goes from the newest messages to the oldest and stops when its
-- page is full; and messages that are written together change few places of the index.
--
-- Scripts such as Chinese, Japanese and Thai do not separate words, and emoji stand anywhere: of these, every two
-- characters that follow each other are a word. What separates words is listed, because classes of characters depend on
-- the locale of the database. A longer word than 40 characters is cut. No function of ours may be called here: indexes are
-- made without a search path.
CREATE FUNCTION message_keys(id text, workspace_id text, contact_id text, said text) RETURNS tsvector
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

-- A search would scan a pending list once for every time.
CREATE INDEX messages_words ON messages USING gin (message_keys(id, workspace_id, contact_id, text))
    WITH (fastupdate = off) WHERE text IS NOT NULL;
