"""How `waybill send` makes requests of a file: it is opened, read in its format, and cut."""
