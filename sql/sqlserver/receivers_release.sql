-- Give back the places of an owner, all but the first few. Parameters: queue, owner, how many it keeps.
DECLARE @queue nvarchar(400) = ?, @owner nvarchar(200) = ?, @keep int = ?;
DELETE FROM {receivers}
WHERE Queue = @queue AND Place > 0 AND Owner = @owner
    AND Place NOT IN (
        SELECT TOP (@keep) Place FROM {receivers} WHERE Queue = @queue AND Place > 0 AND Owner = @owner ORDER BY Place
    );
SELECT @@ROWCOUNT;
