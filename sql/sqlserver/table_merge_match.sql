-- Part of a merge: one column of the key.
{column} = {mark}
