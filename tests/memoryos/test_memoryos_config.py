"""The settings of MemoryOS: their defaults, the refused ones, and their resolution for an agent."""

import json
from dataclasses import fields

import pytest

from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos.config import MAX_NUMBER, MAX_SECONDS, AgentRecord, Configurations, MemoryOSConfig
from jidomem.extras.memoryos.segments import TierPolicy


# D010 D018 D036
def test_the_default_capacities_are_the_published_ones():
    config = MemoryOSConfig()

    assert (config.stm_capacity, config.mtm_capacity, config.object_kb_capacity) == (7, 200, 100)


# D020 D026 D030
def test_heat_weights_and_queue_capacities_are_settings():
    config = MemoryOSConfig(heat_alpha=2, heat_beta=0, heat_gamma=0.5, object_kb_capacity=3, agent_traits_capacity=2)

    assert (config.heat_alpha, config.heat_beta, config.heat_gamma) == (2.0, 0.0, 0.5)
    assert (config.object_kb_capacity, config.agent_traits_capacity) == (3, 2)


# D010 D018 D026
def test_queue_capacities_are_set_for_an_agent_or_its_type():
    configurations = (
        Configurations()
        .with_type("coder", stm_capacity=3, mtm_capacity=20, object_kb_capacity=10, agent_traits_capacity=5)
        .with_agent("ada", "coder", stm_capacity=4, agent_traits_capacity=6)
        .with_agent("bob", "coder")
    )

    def sizes(agent):
        config = configurations.get_agent_config(agent)
        return config.stm_capacity, config.mtm_capacity, config.object_kb_capacity, config.agent_traits_capacity

    assert (sizes("ada"), sizes("bob"), sizes("carl")) == ((4, 20, 10, 6), (3, 20, 10, 5), (7, 200, 100, 30))


# D043 D027 D052
def test_settings_the_paper_leaves_open_have_defaults():
    config = MemoryOSConfig()

    assert (config.mtm_fscore_threshold, config.heat_threshold) == (0.6, 5.0)
    assert (config.system_importance_threshold, config.system_capacity) == (0.8, 1000)
    assert (config.heat_alpha, config.heat_beta, config.heat_gamma, config.time_constant) == (1, 1, 1, 1.0e7)
    assert (config.object_traits_capacity, config.agent_traits_capacity) == (50, 30)


# D041
def test_time_constant_and_maintenance_interval_are_settings():
    config = MemoryOSConfig(time_constant=60, maintenance_interval=10)

    assert (config.time_constant, config.maintenance_interval) == (60.0, 10.0)
    assert {each.name for each in fields(MemoryOSConfig)} == set(config.to_dict())


def deep():
    value = []
    for _ in range(5_000):
        value = [value]
    return value


HUGE = 10**5_000  # Python writes no number of so many digits
#: Invalid values of each kind of setting: of another type, out of range, no number, too large, too deep.
NO_NUMBER = (True, None, "7", "", b"7", [], [7], {}, {"a": 1}, object(), 1j, float("nan"), float("inf"), -float("inf"),
             HUGE, -HUGE, 1e308, deep())  # fmt: skip
NO_TEXT = (7, 0.5, True, "", " ", b"kept", [], ["kept"], {}, object(), HUGE, "\ud800", deep())
NO_MAPPING = (None, 7, True, "text", b"", [], ["a"], object(), HUGE, deep(), {"a": object()}, {"a": float("nan")},
              {7: "a"}, {"a": deep()})  # fmt: skip
CAPACITY = (*NO_NUMBER, 0, -1, 2.0, 0.5, MAX_NUMBER + 1)
TRUTHS = ("strict_vectors", "share_users", "transfer_before_evicting")
WRONG = {
    **dict.fromkeys(
        ("stm_capacity", "mtm_capacity", "segment_keywords", "object_kb_capacity", "object_traits_capacity",
         "agent_traits_capacity", "evidence_capacity", "system_capacity", "retrieved_segments", "retrieved_pages",
         "retrieved_knowledge", "retrieved_traits", "retrieved_system"), CAPACITY),
    "segment_capacity": [each for each in CAPACITY if each is not None],
    **dict.fromkeys(("heat_alpha", "heat_beta", "heat_gamma", "heat_threshold"), (*NO_NUMBER, -0.1, -1)),
    **dict.fromkeys(("time_constant", "maintenance_interval"), (*NO_NUMBER, 0, 0.0, -0.0, -1.0)),
    "mtm_fscore_threshold": (*NO_NUMBER, -1.1, 2.1),
    **dict.fromkeys(("segment_threshold", "page_threshold", "knowledge_threshold"),
                    tuple(each for each in (*NO_NUMBER, -1.1, 2.1) if each is not None)),
    **dict.fromkeys(("system_importance_threshold", "system_similarity"), (*NO_NUMBER, -0.1, 1.1, 2)),
    "comparison": (*NO_TEXT, None, "==", "> "),
    "on_transfer": (*NO_TEXT, None, "forget", "KEEP"),
    "evict": (*NO_TEXT, None, "hottest"),
    **dict.fromkeys(TRUTHS, (0, 1, None, "true", "", [], {}, object(), HUGE)),
    "archive": NO_TEXT,
    "single_traits": (None, 7, True, "name", b"name", {"name": 1}, [7], [""], [None], [["name"]], object(), HUGE,
                      deep()),
    "profiles": (*NO_MAPPING, {"user": {"age": "integer"}}, {"user": "text"}, {"user": ["text"]}, {"user": {"a": []}},
                 {"user": {"age": HUGE}}),
    "extra": NO_MAPPING,
}  # fmt: skip
ENDS = {
    **dict.fromkeys(
        [name for name, wrong in WRONG.items() if MAX_NUMBER + 1 in [w for w in wrong if type(w) is int]],
        (1, MAX_NUMBER),
    ),
    **dict.fromkeys(("heat_alpha", "heat_beta", "heat_gamma", "heat_threshold"), (0, 0.5, MAX_NUMBER)),
    **dict.fromkeys(("time_constant", "maintenance_interval"), (1e-9, 1, MAX_SECONDS)),
    **dict.fromkeys(("mtm_fscore_threshold", "segment_threshold", "page_threshold", "knowledge_threshold"), (-1, 0, 2)),
    **dict.fromkeys(("system_importance_threshold", "system_similarity"), (0, 0.5, 1)),
    "comparison": (">", ">="),
    "on_transfer": ("keep", "delete"),
    "evict": ("coldest", "least_visited"),
    **dict.fromkeys(TRUTHS, (True, False)),
    "archive": (None, "kept"),
    "single_traits": ((), ("name",), ("a", "b")),
    "profiles": ({}, {"user": {"age": "number"}}),
    "extra": ({}, {"delta": [1, {"a": None}]}),
}


# D039
@pytest.mark.parametrize("name", [each.name for each in fields(MemoryOSConfig)])
def test_an_invalid_value_of_a_setting_is_refused_wherever_it_is_set(name):
    for invalid in WRONG[name]:
        for set_to in (
            lambda value: MemoryOSConfig(**{name: value}),
            lambda value: MemoryOSConfig().changed({name: value}),
            lambda value: Configurations().with_type("coder", **{name: value}),
            lambda value: Configurations().with_agent("ada", **{name: value}),
            lambda value: Configurations(agents=(AgentRecord("ada", "coder", {name: value}),)),
        ):
            with pytest.raises(InvalidRequest) as refusal:
                set_to(invalid)

            assert refusal.value.hint
            assert len(refusal.value.detail) < 600
        with pytest.raises(InvalidRequest, match=name):
            MemoryOSConfig(**{name: invalid})


# D037 D039 D042
@pytest.mark.parametrize("name", [each.name for each in fields(MemoryOSConfig)])
def test_both_ends_of_the_range_of_a_setting_are_accepted_and_survive_json(name):
    for value in ENDS[name]:
        config = MemoryOSConfig(**{name: value})

        assert getattr(config, name) == value
        assert MemoryOSConfig.from_dict(json.loads(json.dumps(config.to_dict(), allow_nan=False))) == config
        as_json = {name: config.to_dict()[name]}
        assert Configurations().with_agent("ada", **as_json).get_agent_config("ada") == config


# D039
@pytest.mark.parametrize("invalid", [{"config": {"stm_capacity": 3}}, {"config": None}, {"heat": 1}, {"fscore": "f"}])
def test_a_policy_with_an_invalid_argument_is_refused(invalid):
    with pytest.raises(InvalidRequest, match=f"{next(iter(invalid))} of a TierPolicy"):
        TierPolicy(**invalid)


def test_an_unknown_setting_is_refused_with_the_nearest_name():
    with pytest.raises(InvalidRequest, match="MemoryOS has no setting 'stm_capcity'") as refusal:
        Configurations().with_agent("ada", stm_capcity=3)

    assert refusal.value.hint == "did you mean 'stm_capacity'?"
    with pytest.raises(InvalidRequest, match="stm_capacity is a whole number from 1, not 0") as refusal:
        Configurations().with_type("coder", stm_capacity=0)
    assert refusal.value.hint == "the default is stm_capacity=7"


# D038 D042 D115
def test_a_setting_is_resolved_from_the_agent_its_type_and_the_application_in_this_order():
    configurations = (
        Configurations(MemoryOSConfig(mtm_capacity=50, heat_alpha=2.0))
        .with_type("coder", stm_capacity=3, heat_alpha=3.0)
        .with_agent("ada", "coder", heat_alpha=4.0)
    )

    ada, other = configurations.get_agent_config("ada"), configurations.get_agent_config("somebody")

    assert (ada.heat_alpha, ada.stm_capacity, ada.mtm_capacity, ada.object_kb_capacity) == (4.0, 3, 50, 100)
    assert (other.heat_alpha, other.stm_capacity, other.mtm_capacity) == (2.0, 7, 50)


# D037
def test_the_record_of_an_agent_has_its_type_and_extra_values():
    configurations = Configurations().with_type("coder", extra={"delta": 1, "beta": 2})
    configurations = configurations.with_agent("ada", "coder", heat_threshold=9).with_agent("ada", extra={"delta": 3})

    assert configurations.record("ada") == AgentRecord("ada", "coder", {"heat_threshold": 9, "extra": {"delta": 3}})
    assert configurations.get_agent_config("ada").extra == {"delta": 3, "beta": 2}
    assert configurations.record("somebody") == AgentRecord("somebody", "default")


def test_configurations_survive_json():
    configurations = Configurations(MemoryOSConfig.bai_lab()).with_type("coder", stm_capacity=3)
    configurations = configurations.with_agent("ada", "coder", profiles={"user": {"age": "number"}})

    assert Configurations.from_dict(json.loads(json.dumps(configurations.to_dict()))) == configurations


def test_two_records_of_one_agent_are_refused():
    with pytest.raises(InvalidRequest, match="an agent has one record"):
        Configurations(agents=(AgentRecord("ada"), AgentRecord("ada")))


# D102
def test_the_presets_have_the_values_of_the_two_published_implementations():
    smith, bai = MemoryOSConfig.smith(), MemoryOSConfig.bai_lab()

    assert (smith.heat_alpha, smith.heat_beta, smith.heat_gamma) == (1.0, 0.5, 2.0)
    assert (smith.comparison, smith.on_transfer, smith.stm_capacity, smith.time_constant) == (">=", "delete", 7, 1e7)
    assert (bai.stm_capacity, bai.mtm_capacity, bai.time_constant) == (10, 2000, 86_400.0)
    assert (bai.comparison, bai.evict, bai.on_transfer) == (">=", "least_visited", "keep")
    assert (bai.retrieved_pages, bai.retrieved_segments, bai.retrieved_knowledge) == (7, 5, 20)
    assert (bai.segment_threshold, bai.page_threshold, bai.knowledge_threshold) == (0.1, 0.1, 0.01)


# D058
def test_a_threshold_must_be_exceeded_unless_the_comparison_allows_equality():
    assert not MemoryOSConfig().reaches(0.6, 0.6)
    assert MemoryOSConfig().reaches(0.6000001, 0.6)
    assert MemoryOSConfig(comparison=">=").reaches(0.6, 0.6)
    assert MemoryOSConfig().reaches(-1.0, None)
