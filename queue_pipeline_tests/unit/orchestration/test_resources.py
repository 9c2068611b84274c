import dagster as dg

from queue_pipeline.orchestration.resources import QueueTransportResource
from queue_pipeline.transport import QueueTransport


def test_connections_are_kept_for_the_life_of_the_process(tmp_path):
    url = f"sqlite:///{tmp_path}/queues.db"
    first, again = (QueueTransportResource(database=url).transport(endpoint="orders") for _ in range(2))
    assert first is again
    assert QueueTransportResource(database=url).transport(endpoint="billing") is not first
    assert QueueTransportResource(database=url).transport(endpoint="orders", error_queue="dead") is not first


def test_schemas_and_catalogs_reach_the_transport(tmp_path):
    resource = QueueTransportResource(
        database="postgresql://user@127.0.0.1:1/shop", default_schema="sales", queue_schemas={"error": "ops"}
    )
    transport = resource.transport()
    assert transport is not QueueTransportResource(database="postgresql://user@127.0.0.1:1/shop").transport()
    assert transport.settings.schema == "sales"
    assert transport.settings.queue_schemas == {"error": "ops"}


def test_the_database_is_read_from_the_environment_when_a_run_starts(monkeypatch, tmp_path):
    @dg.op
    def look(transport: QueueTransportResource) -> str:
        return str(transport.transport().database.url)

    @dg.job(resource_defs={"transport": QueueTransportResource(database=dg.EnvVar("SOME_DATABASE"))})
    def job() -> None:
        look()

    for name in ("one", "two"):
        monkeypatch.setenv("SOME_DATABASE", f"sqlite:///{tmp_path}/{name}.db")
        assert job.execute_in_process().output_for_node("look").endswith(f"{name}.db")


def test_the_table_of_subscriptions_reaches_the_transport_and_those_that_executors_make():
    database, named = "postgresql://user@127.0.0.1:1/shop", '"shared"."Routing"'
    transport = QueueTransportResource(database=database, subscriptions_table=named).transport()
    assert transport.subscriptions.table.canonical == named
    assert QueueTransport.of(transport.settings).subscriptions.table.canonical == named
    default = QueueTransportResource(database=database, default_schema="sales").transport()
    assert default.subscriptions.table.canonical == '"sales"."SubscriptionRouting"'
