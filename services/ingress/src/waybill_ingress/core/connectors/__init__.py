"""Files that are fetched into inputs: their rows, and how far one has come. Pure."""
