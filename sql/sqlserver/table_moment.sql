-- Part of a row: an instant, which travels as text. Drivers bind a time with as many digits as the server's oldest type has,
-- and cut off the rest without a word.
CAST(? AS datetime2(6))
