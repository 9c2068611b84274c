-- The addresses that want an event of these topics, each once however many of them it wants.
SELECT DISTINCT queueaddress
FROM {subscriptions}
WHERE topic IN ({marks})
ORDER BY queueaddress
