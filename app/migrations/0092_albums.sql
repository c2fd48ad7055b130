-- Albums: files that a contact sends together, each in a provider message of its own.

-- The provider's identifier of the album.
ALTER TABLE messages ADD COLUMN album text COLLATE "C";
