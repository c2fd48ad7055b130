-- `published_by`: the token, member or visit that published the version; null: it is not known.
ALTER TABLE automation_versions ADD COLUMN published_by text COLLATE "C";
