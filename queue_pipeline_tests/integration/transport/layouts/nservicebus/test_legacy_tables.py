"""Queue tables of every version that is about (spec 1.3) are sent to, received from and claimed from."""

import pytest

from queue_pipeline.transport import OutgoingMessage
from queue_pipeline.transport.messages import headers as wire

VERSIONS = {
    "version 1: varchar headers, clustered, no index on Expires": ("varchar(max)", True, True, None),
    "version 2.2.2: varchar headers, clustered, Index_Expires": ("varchar(max)", True, True, ""),
    "version 3.1: nvarchar headers, clustered, filtered": ("nvarchar(max)", True, True, "WHERE Expires IS NOT NULL"),
    "version 6.0.1: heap": ("nvarchar(max)", True, False, "WHERE Expires IS NOT NULL"),
    "Recoverable and the columns of version 1 dropped": ("nvarchar(max)", False, False, ""),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_table_of_an_older_version_works(sqlserver, version):
    headers_type, has_v1_columns, clustered, expires_index = VERSIONS[version]
    transport = sqlserver.transport()
    table = transport.resolve("orders").qualified
    v1 = "CorrelationId varchar(255), ReplyToAddress varchar(255), Recoverable bit NOT NULL," if has_v1_columns else ""
    sqlserver.sql(
        transport,
        f"CREATE TABLE {table} (Id uniqueidentifier NOT NULL, {v1} Expires datetime, Headers {headers_type} NOT NULL, "
        "Body varbinary(max), RowVersion bigint IDENTITY(1, 1) NOT NULL)",
    )
    kind = "CLUSTERED" if clustered else "NONCLUSTERED"
    sqlserver.sql(transport, f"CREATE {kind} INDEX Index_RowVersion ON {table} (RowVersion)")
    if expires_index is not None:
        sqlserver.sql(
            transport, f"CREATE INDEX Index_Expires ON {table} (Expires) INCLUDE (Id, RowVersion) {expires_index}"
        )
    transport.install("orders")
    sent = [OutgoingMessage(str(n).encode(), {"n": str(n), "text": "żółć \U0001f600 中"}) for n in range(4)]
    transport.send("orders", sent)
    with transport.receive("orders", 2) as batch:
        assert [message.body for message in batch] == [b"0", b"1"]
        assert [message.headers["text"] for message in batch] == ["żółć \U0001f600 中"] * 2
    claim = transport.claim("orders", "me", 10)
    (read,) = transport.claim_reader.read(claim)
    assert [wire.decode(text)["text"] for text in read.column("headers").to_pylist()] == ["żółć \U0001f600 中"] * 2
    assert transport.claims.give_back(claim) == 2
    assert transport.peek("orders") == 2
    assert [shown.body for shown in transport.show("orders")] == [b"2", b"3"]
    if has_v1_columns:
        written = "UPDATE {} SET CorrelationId = 'c1', ReplyToAddress = 'shop'"
        sqlserver.sql(transport, written.format(table))
        assert transport.claims.give_back(transport.claim("orders", "me", 10)) == 2
        columns = sqlserver.sql(transport, f"SELECT CorrelationId, ReplyToAddress FROM {table}")
        assert [tuple(row) for row in columns] == [("c1", "shop")] * 2
