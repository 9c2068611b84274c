-- The addresses that want an event of these topics, each once however many of them it wants.
SELECT DISTINCT QueueAddress
FROM {subscriptions}
WHERE Topic IN ({marks})
ORDER BY QueueAddress
