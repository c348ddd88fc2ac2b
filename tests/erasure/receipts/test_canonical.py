import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foul.erasure.receipts.canonical import canonical, sha256

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_what_is_read_back_has_the_same_bytes(value: object) -> None:
    data = canonical(value)
    assert canonical(json.loads(data)) == data
    assert json.loads(data) == value


def test_the_form_is_as_documented() -> None:
    value = {"b": [1, 0.5, None, True], "a": 'é "\n', "é": 1e-7}
    assert canonical(value) == '{"a":"é \\"\\n","b":[1,0.5,null,true],"é":1e-07}\n'.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_cannot_say_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"value": number})


def test_the_hash_is_that_of_sha256sum() -> None:
    # printf abc | sha256sum
    told = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256(b"abc") == told
