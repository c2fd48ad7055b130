-- A line of an import whose bad cells were left out has an error too, though its contact was imported.

ALTER TABLE import_errors ADD COLUMN is_imported boolean NOT NULL DEFAULT false;
