"""The `waybill` command. Owns what is typed and printed; the SDK does the rest."""
