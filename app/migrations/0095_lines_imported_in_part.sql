-- A line that was imported without its bad cells has an error row, too.

ALTER TABLE import_errors ADD COLUMN is_imported boolean NOT NULL DEFAULT false;
