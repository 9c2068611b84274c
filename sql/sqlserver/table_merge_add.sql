-- Part of a merge: one column adds the new value to what is stored.
{column} = COALESCE({column}, 0) + {mark}
