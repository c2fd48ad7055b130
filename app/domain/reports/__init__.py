"""Reports of the inbox by days of a time zone, from figures that are counted in the background."""
