"""Names of the columns that a Kafka sink needs beside the rows. They never reach a table."""

KEY = "__waybill_key"
VALUE = "__waybill_value"
