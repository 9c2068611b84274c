-- Subscribe, or change the address of a subscription; touches no row when it is there already.
-- Parameters: address, endpoint, topic.
INSERT INTO {subscriptions} AS known (queueaddress, endpoint, topic)
SELECT CAST(? AS text), CAST(? AS text), CAST(? AS text)
ON CONFLICT (endpoint, topic) DO UPDATE SET queueaddress = excluded.queueaddress
WHERE known.queueaddress <> excluded.queueaddress
