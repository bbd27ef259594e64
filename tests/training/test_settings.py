"""Settings: the paper's values, what is refused and how, and what makes another run."""

import json
import math
import re
from dataclasses import fields, replace

import pytest

import rankone
from rankone import Corpus
from rankone.errors import LengthError, SettingError
from rankone.nn import Architecture
from rankone.training.settings import Settings

HUGE = 1 << 31

# For each setting, values that are refused.
NO_NUMBERS = [None, "1", 1.0, 1.5, True, [1], math.nan]
REFUSED = {
    **{name: [0, -1, HUGE, *NO_NUMBERS] for name in ("batch_size", "dim")},
    "depth": [0, -1, 1001, *NO_NUMBERS],
    "epochs": [0, -1, 1_000_001, *NO_NUMBERS],
    "patience": [-1, 1_000_001, *NO_NUMBERS],
    "heads": [0, -1, HUGE, *NO_NUMBERS],
    **{name: [-1, HUGE, *NO_NUMBERS] for name in ("hidden", "head_size", "seed")},
    "max_length": [0, -1, (1 << 24) + 1, *NO_NUMBERS[1:]],  # None: as long as needed
    "attention": ["hardmax", "Rank1", "", None, 1, []],
    "optimizer": ["adamw", "Adam", None],
    "schedule": ["cosine", None],
    "accuracy": ["before", None],
    "dtype": ["float16", "bfloat16", "torch.float32", None],
    "positions": [1, 0, None, "yes"],
    "lr": [-0.1, math.nan, math.inf, "0.1", None],
    "init_std": [-0.1, math.nan, math.inf, "0.1", None],
    "momentum": [-0.1, 1.0, 1.5, math.nan, math.inf, "0.1", None],
}
EACH = [(name, value) for name, values in REFUSED.items() for value in values]


def refusal(**given):
    with pytest.raises(SettingError) as caught:
        Settings(**given)
    return caught.value


def test_defaults_are_those_of_the_paper():
    settings = Settings()
    assert (settings.depth, settings.epochs, settings.batch_size) == (1, 400, 32)
    assert settings.attention == "rank1"
    corpus = rankone.read_corpus("toy")
    shape = settings.network(corpus)
    assert (shape.attention, shape.heads, shape.head_size) == ("rank1", 1, 1)
    assert shape.feedforward == "dense"
    assert not shape.causal


def test_every_setting_has_a_default_and_is_refused_something():
    assert {field.name for field in fields(Settings)} == REFUSED.keys()
    assert Settings() == Settings(**Settings().to_json())


@pytest.mark.parametrize(("name", "value"), EACH, ids=[f"{n}={v!r}" for n, v in EACH])
def test_a_refusal_names_the_setting_the_value_and_the_remedy(name, value):
    error = refusal(**{name: value})
    assert error.what == f"{name} cannot be {value!r}"
    assert error.remedy
    assert error.remedy in str(error)


@pytest.mark.parametrize("name", ["attention", "optimizer", "schedule", "accuracy", "dtype"])
def test_the_remedy_of_a_choice_lists_all_choices_and_they_are_taken(name):
    remedy = refusal(**{name: "no such thing"}).remedy
    choices = remedy.removeprefix("give one of ").split(", ")
    assert getattr(Settings(), name) in choices
    for choice in choices:
        assert getattr(Settings(**{name: choice}), name) == choice


@pytest.mark.parametrize(
    ("name", "value", "bounds"),
    [("dim", HUGE, {HUGE - 1, HUGE}), ("seed", HUGE, {HUGE - 1, HUGE}), ("momentum", 1.5, {1})],
)
def test_the_remedy_tells_the_bound_that_was_passed(name, value, bounds):
    remedy = refusal(**{name: value}).remedy.replace(",", "")
    assert bounds & {int(number) for number in re.findall(r"\d+", remedy)}


@pytest.mark.parametrize("lr", [0, 0.0, -0.0])
def test_a_learning_rate_of_nothing_is_refused(lr):
    error = refusal(lr=lr)
    assert "learning rate of 0" in error.what
    assert "lr > 0" in error.remedy


@pytest.mark.parametrize("name", ["lr", "init_std", "momentum"])
@pytest.mark.parametrize("value", [10**400, True], ids=["10^400", "True"])
def test_what_is_no_float_is_refused(name, value):
    assert name in refusal(**{name: value}).what


@pytest.mark.parametrize("value", [0, 1, 1e-300, 1e300])
def test_whole_and_extreme_numbers_are_numbers(value):
    assert Settings(init_std=value).init_std == value


def test_heads_that_do_not_divide_the_dimensions_are_refused():
    error = refusal(attention="softmax", dim=10, heads=3)
    assert "3 heads" in error.what
    assert "10 dimensions" in error.what
    assert "head_size" in error.remedy


def test_heads_need_not_divide_the_dimensions_where_their_size_is_given():
    corpus = rankone.read_corpus("toy")
    shape = Settings(attention="softmax", dim=10, heads=3, head_size=4).network(corpus)
    assert (shape.heads, shape.head_size) == (3, 4)


@pytest.mark.parametrize("attention", ["rank1", "theorem2"])
def test_the_network_has_a_row_per_word_and_one_more(attention):
    corpus = rankone.read_corpus("builtin")
    found = Settings(attention=attention, dim=6, depth=3).network(corpus)
    assert found == Architecture(
        vocabulary=len(corpus.vocabulary) + 1,
        labels=len(corpus.label_names),
        dim=6,
        hidden=24,
        positions=corpus.longest,
        depth=3,
    )


def test_hidden_units_and_positions_as_asked_for():
    corpus = rankone.read_corpus("toy")
    found = Settings(hidden=5, positions=False).network(corpus)
    assert (found.hidden, found.positions) == (5, 0)
    assert Settings(max_length=40).network(corpus).positions == 40
    full = Settings(attention="softmax", dim=12, heads=3).network(corpus)
    assert (full.attention, full.heads, full.head_size) == ("softmax", 3, 4)


def test_a_sentence_that_is_longer_than_max_length_is_refused():
    corpus = Corpus.from_sentences([(["a"], ["x"]), (["a"] * 3, ["x"] * 3)], source="here")
    with pytest.raises(LengthError, match="3 tokens, but the table of positions has 2") as caught:
        Settings(max_length=2).network(corpus)
    assert caught.value.where == "here, sentence 2"
    assert (
        caught.value.remedy == "split the sentence, or make a model with more of them (max_length)"
    )


OTHER = {
    "depth": 3,
    "batch_size": 16,
    "attention": "softmax",
    "dim": 8,
    "hidden": 7,
    "heads": 2,
    "head_size": 3,
    "positions": False,
    "optimizer": "sgd",
    "lr": 0.5,
    "momentum": 0.9,
    "schedule": "linear",
    "init_std": 1.0,
    "accuracy": "after",
    "dtype": "float64",
    "seed": 1,
}


def test_equal_settings_do_not_differ():
    assert Settings().differences(Settings()) == []


# Without which a setting would have no effect.
NEEDED = {"heads": "attention", "head_size": "attention", "momentum": "optimizer"}
NO_EFFECT = {"heads": 2, "head_size": 3, "momentum": 0.5, "max_length": 9}


@pytest.mark.parametrize("name", OTHER)
def test_each_difference_is_told_by_name_and_both_values(name):
    before = Settings(**{NEEDED[name]: OTHER[NEEDED[name]]} if name in NEEDED else {})
    now = replace(before, **{name: OTHER[name]})
    told = f"{name} {OTHER[name]}, not {getattr(before, name)}"
    assert before.differences(now) == [told]
    assert now.differences(before) == [f"{name} {getattr(before, name)}, not {OTHER[name]}"]


@pytest.mark.parametrize("name", NO_EFFECT)
def test_what_would_have_no_effect_is_refused(name):
    """Unless it is the default, or what makes it matter is there too."""
    without = {"positions": False} if name == "max_length" else {}
    error = refusal(**without, **{name: NO_EFFECT[name]})
    assert error.what.startswith(f"{name} {NO_EFFECT[name]} has no effect with ")
    assert f"leave {name} out, or choose " in error.remedy
    default = getattr(Settings(), name)
    assert Settings(**without, **{name: default}) == Settings(**without)
    needed, value = error.remedy.rpartition("choose ")[2].split()
    sound = Settings(**{needed: value == "True" or value, name: NO_EFFECT[name]})
    assert getattr(sound, name) == NO_EFFECT[name]


def test_every_setting_but_when_to_stop_makes_a_difference():
    stops = {"epochs", "patience"}
    assert {field.name for field in fields(Settings)} - OTHER.keys() == {*stops, "max_length"}
    assert Settings().differences(Settings(max_length=9)) == ["max_length 9, not None"]
    told = Settings().differences(Settings(epochs=5, **OTHER))
    assert {line.split()[0] for line in told} == {*OTHER, "epochs"}


def test_more_epochs_are_a_difference_only_where_the_learning_rate_depends_on_them():
    assert Settings(epochs=4).differences(Settings(epochs=9, patience=2)) == []
    linear = [Settings(epochs=n, schedule="linear") for n in (4, 9)]
    assert linear[0].differences(linear[1]) == ["epochs 9, not 4"]


def test_settings_survive_a_file():
    settings = Settings(lr=0.1, init_std=1, positions=False, **{"attention": "softmax", "heads": 4})
    again = Settings(**json.loads(json.dumps(settings.to_json())))
    assert again == settings
    assert settings.differences(again) == []
