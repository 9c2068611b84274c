-- Part of a merge: one column takes the new value.
{column} = {mark}
