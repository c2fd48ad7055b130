"""Pages about contacts: finding, changing, importing and exporting them."""
