-- Albums: files that a contact sends together, for which a provider makes a message each.

-- The provider's identifier of the album.
ALTER TABLE messages ADD COLUMN album text COLLATE "C";
