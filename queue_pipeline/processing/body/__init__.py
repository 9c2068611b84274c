"""Message bodies: declared as DDL, a StructType or a pydantic model, validated by pydantic into an Arrow column."""
