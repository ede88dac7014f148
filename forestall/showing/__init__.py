"""How results show themselves in a notebook: as HTML without scripts, in which every text is escaped."""
