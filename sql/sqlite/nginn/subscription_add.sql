-- Subscribe, or hold a subscription for longer. Parameters: seconds until it expires (-1 = never), publisher,
-- subscriber, type.
INSERT INTO {subscriptions} (publisher_endpoint, subscriber_endpoint, message_type, created_date, expiration_date)
SELECT
    m.publisher, m.subscriber, m.type, strftime('%Y-%m-%d %H:%M:%f', 'now'),
    CASE
        WHEN m.seconds = -1 THEN NULL
        ELSE strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+d seconds', m.seconds))
    END
FROM (
    SELECT
        CAST(? AS bigint) AS seconds,
        CAST(? AS text) AS publisher,
        CAST(? AS text) AS subscriber,
        CAST(? AS text) AS type
) AS m
WHERE TRUE
ON CONFLICT (publisher_endpoint, message_type, subscriber_endpoint)
DO UPDATE SET expiration_date = excluded.expiration_date
