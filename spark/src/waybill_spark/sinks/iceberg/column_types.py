"""Which types a column of Iceberg accepts, stricter than PyIceberg."""

from pyiceberg import types


def accepts(column: types.IcebergType, given: types.IcebergType) -> bool:
    """Return True if the column accepts the type. This is stricter than PyIceberg, which accepts
    bytes as text, and lets decimals lose digits.
    """
    match column, given:
        case types.StructType(), types.StructType():
            return _accepts_struct(column, given)
        case types.ListType(), types.ListType():
            return _accepts_field(column.element_field, given.element_field)
        case types.MapType(), types.MapType():
            return accepts(column.key_type, given.key_type) and _accepts_field(
                column.value_field, given.value_field
            )
        case types.BinaryType(), types.StringType():
            return True
        case _:
            return column == given or is_wider(column, given)


def _accepts_struct(column: types.StructType, given: types.StructType) -> bool:
    wanted = {each.name: each for each in column.fields}
    names = {each.name for each in given.fields}
    return all(
        each.name in wanted and _accepts_field(wanted[each.name], each) for each in given.fields
    ) and not any(each.required and each.name not in names for each in column.fields)


def _accepts_field(column: types.NestedField, given: types.NestedField) -> bool:
    optional = given.required or not column.required
    return optional and accepts(column.field_type, given.field_type)


def is_wider(kind: types.IcebergType, than: types.IcebergType) -> bool:
    """Return True if what was written as `than` can be read as `kind`."""
    match than, kind:
        case (types.IntegerType(), types.LongType()) | (types.FloatType(), types.DoubleType()):
            return True
        case types.DecimalType(), types.DecimalType():
            return than.scale == kind.scale and than.precision < kind.precision
        case _:
            return False


def is_float(kind: types.IcebergType) -> bool:
    """Return True for floats: a value that is not a number equals nothing, not even itself."""
    return isinstance(kind, (types.FloatType, types.DoubleType))
