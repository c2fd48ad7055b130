-- How many bytes of files were stored until `ends_at`, by address, visitor, channel and workspace. `key`: a digest.
CREATE TABLE stored_bytes (
    key bytea PRIMARY KEY,
    bytes bigint NOT NULL,
    ends_at timestamptz NOT NULL
);
CREATE INDEX stored_bytes_age ON stored_bytes (ends_at);
