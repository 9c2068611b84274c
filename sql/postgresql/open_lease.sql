-- How long the server lets this transaction wait for its client, as text in milliseconds: a machine that vanished without a
-- word would else hold its messages for as long as the network takes to notice.
SELECT set_config('idle_in_transaction_session_timeout', CAST(? AS text), TRUE)
