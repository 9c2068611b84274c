"""The client: asks for prices and waits for the replies. It needs neither Spark nor Dagster."""

from queue_pipeline import QueueClient

with QueueClient(endpoint="shop", create=True) as client:
    # submit goes on at once: three requests are in flight, and each future gets the reply to its own.
    futures = {n: client.submit("prices", {"pieces": n}, timeout=120) for n in (1, 3, 5)}
    for n, future in futures.items():
        print(f"{n} pieces: {future.result().json()['price']}")

    # request waits. A service may reply with a number only, as .NET endpoints do.
    print(f"no pieces: code {client.request('prices', {'pieces': 0}, timeout=120).code}")
