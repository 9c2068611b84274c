from queue_pipeline.transport.texts import FEW, LONGEST_REASON, Refusal, few_of_each, last_of


def test_a_line_per_cause_names_the_first_few_messages_and_counts_the_rest():
    many = [Refusal(f"m-{n}", "TooLong", f"{n} characters") for n in range(FEW + 2)]
    first, second = few_of_each([many[0], Refusal("x", "Missing", "no name"), *many[1:]])
    assert first == "5 messages, TooLong: m-0: 0 characters; m-1: 1 characters; m-2: 2 characters; and 2 more"
    assert second == "1 message, Missing: x: no name"


def test_a_long_reason_is_cut():
    (line,) = few_of_each([Refusal("x", "Long", "y" * 10_000)])
    assert len(line) < LONGEST_REASON + 50


def test_without_refused_messages_there_is_no_line():
    assert list(few_of_each([])) == []


def test_the_last_one_is_not_counted():
    assert (last_of(1, "run"), last_of(3, "run")) == ("the last run", "the last 3 runs")
