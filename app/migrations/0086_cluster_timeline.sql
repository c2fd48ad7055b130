-- Which cluster this is, and which of its timelines: that changes when a standby takes over, or after recovery to a
-- point in time, when numbers of transactions are given out again. Empty where the server does not say, such as Amazon
-- Aurora without logical replication; its standbys share the storage, so none is behind.

CREATE FUNCTION cluster_timeline() RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT to_hex(system_identifier) FROM pg_control_system()) || '/'
        || ltrim(left(pg_walfile_name(pg_current_wal_insert_lsn()), 8), '0');
EXCEPTION WHEN object_not_in_prerequisite_state OR feature_not_supported OR insufficient_privilege THEN
    RETURN '';
END $$;
