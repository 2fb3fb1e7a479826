"""Records that a stage cannot process: found, left out, and journaled before any sink."""
