"""Tracked Spark batches: wrap `foreachBatch`, and every batch reports what it made durable.

`stage_runner` is its first user; a PySpark job of your own is the second.
"""
