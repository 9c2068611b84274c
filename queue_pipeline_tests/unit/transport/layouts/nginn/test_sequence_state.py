import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.transport.layouts.nginn.sequences import Numbered, State, numbered


def message(number, row=None, length=None):
    return Numbered(number + 1 if row is None else row, "s", number, length)


def test_a_state_is_written_as_the_reference_reads_it():
    state = State("s", last=4, waiting={7: 70, 6: 60}, length=9)
    kept = json.loads(state.text())
    kept.pop("LastMessageSeen")
    assert kept == {"Id": "s", "LastProcessedNumber": 4, "RemainingMessages": {"6": 60, "7": 70}, "Length": 9}


def test_a_new_state_leaves_out_what_it_does_not_know():
    assert set(json.loads(State("s").text())) == {"Id", "RemainingMessages", "LastMessageSeen"}


@given(
    st.none() | st.integers(0, 10**9),
    st.dictionaries(st.integers(0, 10**9), st.integers(0, 2**63 - 1)),
    st.none() | st.integers(1, 10**9),
)
def test_a_state_comes_back_as_it_was_written(last, waiting, length):
    state = State("s", last, waiting, length)
    assert State.read("s", state.text()) == state


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", State("s")),
        ('{"LastProcessedNumber":-1,"RemainingMessages":null}', State("s")),
        ('{"LastProcessedNumber":3,"RemainingMessages":{"$type":"x","5":"50"}}', State("s", 3, {5: 50})),
    ],
)
def test_a_state_that_dotnet_wrote_is_read(text, expected):
    assert State.read("s", text) == expected


def test_the_first_number_is_zero():
    assert State("s").next == 0
    assert State("s", last=0).next == 1


@pytest.mark.parametrize(
    ("last", "length", "complete"), [(None, None, False), (4, None, False), (1, 3, False), (2, 3, True)]
)
def test_a_sequence_is_complete_when_its_last_number_is_done(last, length, complete):
    assert State("s", last=last, length=length).is_complete is complete


def test_numbers_without_a_gap_are_admitted_and_the_rest_waits():
    state = State("s")
    assert state.admit([message(0), message(1), message(3)]) == ([1, 2], [4])
    assert state.waiting == {3: 4}


def test_a_number_that_was_handled_is_always_admitted():
    state = State("s", last=5)
    assert state.admit([message(4), message(2), message(5)])[1] == []


def test_a_message_that_stands_before_its_predecessor_waits():
    state = State("s")
    assert state.admit([message(1, row=10), message(0, row=11)]) == ([11], [10])
    assert state.waiting == {1: 10}


def test_a_length_that_only_one_message_carries_is_kept():
    state = State("s")
    state.admit([message(0), message(1, length=3)])
    assert state.length == 3


def test_handling_before_its_turn_is_noticed():
    assert State("s").handled([message(1)]) is False
    state = State("s")
    assert state.handled([message(1), message(0)]) is True
    assert state.next == 2


def test_handling_an_old_number_does_not_reset_the_state():
    state = State("s", last=5)
    assert state.handled([message(2)]) is True
    assert state.last == 5


@given(st.permutations(range(8)), st.lists(st.integers(1, 4), min_size=30, max_size=30))
def test_each_message_is_admitted_once_and_in_turn_in_any_order_of_arrival(order, sizes):
    state, queue, handled = State("s"), [message(number, length=8) for number in order], []
    for size in sizes * 3:
        batch, queue = queue[:size], queue[size:]
        now, _ = state.admit(batch)
        taken = [one for one in batch if one.row in now]
        assert state.handled(taken)
        handled += [one.number for one in taken]
        queue += [one for one in batch if one.row not in now]
    assert handled == list(range(8))
    assert state.is_complete
    assert state.waiting == {}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"_NG-Seq": "s", "_NG-SeqNum": "4"}, [Numbered(1, "s", 4, None)]),
        ({"_NG-Seq": "s", "_NG-SeqNum": "4", "_NG-SeqLen": "9"}, [Numbered(1, "s", 4, 9)]),
        ({"_NG-Seq": "s", "_NG-SeqNum": "4", "_NG-SeqLen": "many"}, [Numbered(1, "s", 4, None)]),
        ({"_NG-Seq": "s", "_NG-SeqNum": "²"}, []),
        ({"_NG-Seq": "s", "_NG-SeqNum": "-1"}, []),
        ({"_NG-Seq": "s", "_NG-SeqNum": "1" * 19}, []),
        ({"_NG-Seq": "s"}, []),
        ({"_NG-Seq": "", "_NG-SeqNum": "4"}, []),
        ({"_NG-Seq": "s" * 101, "_NG-SeqNum": "4"}, []),
    ],
)
def test_the_headers_of_a_sequence_are_recognised(headers, expected):
    assert numbered({1: headers}) == expected
