"""Pages of broadcasts: composed with a preview, watched while they run, and read afterwards."""
