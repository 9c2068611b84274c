"""Message bodies: declared as DDL, a StructType or a pydantic model, parsed and checked by Spark expressions."""
