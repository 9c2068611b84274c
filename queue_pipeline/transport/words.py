"""Words for people: numbers with their nouns."""


def count_of(number: int, noun: str, more: str = "") -> str:
    """`1 message`, `2,000 messages`; with `more`, such as " or more", always the plural."""
    return f"{number:,}{more} {noun}{'' if number == 1 and not more else 'es' if noun.endswith('ch') else 's'}"
