"""Files that are fetched into inputs: their rows, and how far each file is read. Pure."""
