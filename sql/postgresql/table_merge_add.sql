-- Part of a merge: one column adds the new value to what is stored.
{column} = COALESCE(stored.{column}, 0) + COALESCE(EXCLUDED.{column}, 0)
