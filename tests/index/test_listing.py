"""A listing beside a plain sorted list of the same rows."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.index.disagreements import FOREVER, KeyListing

ROWS = st.tuples(st.integers(0, 4000), st.integers(0, 20), st.sampled_from([-1, 5, 10, 15, FOREVER]))


def key(number):
    return f"urn:{number:04d}"


@settings(deadline=None)
@given(st.integers(0, 1500), st.lists(ROWS, max_size=60), st.integers(0, 4000), st.integers(0, 21), st.booleans())
def test_a_page_holds_what_was_known_and_in_force_from_a_key_on_in_order(size, put, start, moment, inactive):
    rows = {key(n): (n % 20, [FOREVER, n % 23, -1][n % 3]) for n in range(0, 2 * size, 2)}
    listing = KeyListing((name, *when) for name, when in rows.items())

    for number, since, until in put:
        listing.put(key(number), since, until)
        rows[key(number)] = since, until

    expected = [
        name
        for name, (since, until) in sorted(rows.items())
        if name >= key(start) and since <= moment and (inactive or until > moment)
    ]
    assert listing.page(key(start), moment, inactive, 5000) == expected
    assert listing.page(key(start), moment, inactive, 7) == expected[:7]
    assert len(listing) == len(rows)


def test_a_listing_that_grew_key_by_key_is_that_of_all_at_once():
    grown = KeyListing([])
    for number in range(3000):
        grown.put(key(number * 7 % 3000), 0, FOREVER)

    assert grown.page("", 0, False, 3000) == [key(number) for number in range(3000)]
