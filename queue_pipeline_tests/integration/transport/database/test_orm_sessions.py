"""Sessions of an ORM in the transaction of a receive or a send: rows and messages are done or undone together."""

import json

import pytest
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from queue_pipeline.errors import DoomedTransactionError
from queue_pipeline.transport import Operation, QueueTransport, TransactionMode, new_message

pytestmark = pytest.mark.both_drivers

SCOPE = TransactionMode.TRANSACTION_SCOPE
ORDERS = [{"customer": "ann", "cents": 250}, {"customer": "bob", "cents": 100}, {"customer": "ann", "cents": 50}]


class Base(DeclarativeBase):
    pass


class CustomerTotal(Base):
    """What a customer ordered so far."""

    __tablename__ = "customer_totals"
    customer: Mapped[str] = mapped_column(primary_key=True)
    cents: Mapped[int]


def add_up_orders(transport: QueueTransport) -> None:
    """Takes orders off their queue, adds them up and sends invoices: all of it happens, or nothing."""
    with (
        transport.receive("orders", mode=SCOPE) as batch,
        Session(batch.connection) as session,
        session.begin(),
    ):
        for message in batch:
            order = json.loads(message.body)
            total = session.get(CustomerTotal, order["customer"])
            if total is None:
                total = CustomerTotal(customer=order["customer"], cents=0)
                session.add(total)
            total.cents += order["cents"]
            batch.send([Operation("billing", new_message(json.dumps(order)))])


@pytest.fixture
def shop(backend, engines):
    """Orders and invoices, and a table of the ORM's, on an engine of the caller's own."""
    engine = engines().execution_options(schema_translate_map={None: backend.schema})
    if backend.name == "sqlserver":
        engine = engine.execution_options(isolation_level="READ COMMITTED")
    transport = QueueTransport(engine, schema=backend.schema)
    transport.install("orders", "billing")
    with engine.begin() as connection:
        # Text keys of SQL Server need a length.
        if backend.name == "sqlserver":
            table = transport.book.own("customer_totals").qualified
            connection.exec_driver_sql(f"CREATE TABLE {table} (customer nvarchar(50) PRIMARY KEY, cents int NOT NULL)")
        else:
            Base.metadata.create_all(connection)
    transport.send("orders", [new_message(json.dumps(order)) for order in ORDERS])
    return transport


def totals(transport):
    with Session(transport.database.engine) as session:
        return {total.customer: total.cents for total in session.query(CustomerTotal)}


def test_an_orm_session_writes_in_the_transaction_of_the_receive(shop):
    add_up_orders(shop)
    assert totals(shop) == {"ann": 300, "bob": 100}
    assert (shop.peek("orders"), shop.peek("billing")) == (0, 3)


def test_rows_of_a_session_sends_and_the_receive_are_undone_together(shop):
    shop.send("orders", new_message(json.dumps({"customer": "eve"})))
    with pytest.raises(KeyError, match="cents"):
        add_up_orders(shop)
    assert totals(shop) == {}
    assert (shop.peek("orders"), shop.peek("billing")) == (4, 0)


def test_a_commit_of_the_session_writes_its_rows_and_ends_nothing(shop):
    with pytest.raises(ZeroDivisionError), shop.receive("orders", mode=SCOPE) as batch:
        with Session(batch.connection) as session:
            session.add(CustomerTotal(customer="zoe", cents=1))
            session.commit()
            assert session.get(CustomerTotal, "zoe") is not None
        raise ZeroDivisionError
    assert totals(shop) == {} and shop.peek("orders") == 3


def test_a_session_that_rolls_back_dooms_the_transaction(shop):
    with pytest.raises(DoomedTransactionError), shop.receive("orders", mode=SCOPE) as batch:
        with Session(batch.connection) as session:
            session.add(CustomerTotal(customer="zoe", cents=1))
            session.flush()
            session.rollback()
        batch.send([Operation("billing", new_message("too late"))])
    assert totals(shop) == {} and (shop.peek("orders"), shop.peek("billing")) == (3, 0)


def test_a_session_of_the_callers_own_sends_by_its_connection(shop):
    with Session(shop.database.engine) as session:
        session.add(CustomerTotal(customer="zoe", cents=1))
        shop.send("billing", new_message("undone"), session.connection())
        session.rollback()
        session.add(CustomerTotal(customer="zoe", cents=2))
        shop.send("billing", new_message("done"), session.connection())
        session.commit()
    assert totals(shop) == {"zoe": 2} and shop.peek("billing") == 1
