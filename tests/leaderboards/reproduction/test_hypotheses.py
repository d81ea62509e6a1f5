"""Hypotheses as data and their verdicts: supported, not supported, not tested."""

import pytest

from leaderboards.seed_statistics import over_seeds
from leaderboards.verdicts import judge, load_hypotheses, part_values, read_hypotheses
from npbench.errors import InputError

CLAIMED = {
    "grpo-collapse", "base-beats-rl-at-k", "mupo-keeps-diversity", "dmpo-keeps-diversity",
    "mupo-gains-at-4", "dmpo-raises-both", "dmpo-structured-diversity", "three-groups-best",
    "dmpo-lambda-robust", "dmpo-alpha-robust", "grpo-length-collapse", "diversity-and-acc-at-4",
    "dmpo-transfers",
}  # fmt: skip
ALL_ARMS = (
    "base", "grpo", "dmpo", "dmpo-replication", "mupo", "mupo-k1", "mupo-k5", "dmpo-lambda-0.3",
    "dmpo-lambda-0.7", "dmpo-alpha-0.8", "dmpo-alpha-1.2",
)  # fmt: skip


def as_the_papers_say(arm, seed, split, measure):
    """A world in which every claim holds, with a little noise."""
    wobble = 0.002 * ((seed * 7 + len(arm) * 3 + len(measure)) % 5 - 2)
    level = {
        "sr": {"base": 0.4, "grpo": 0.6, "dmpo": 0.8},
        "qr": {"base": 0.3, "grpo": 0.5, "dmpo": 0.7, "dmpo-lambda-0.3": 0.7,
               "dmpo-lambda-0.7": 0.7, "dmpo-alpha-0.8": 0.7, "dmpo-alpha-1.2": 0.7},
        "acc@1": {"base": 0.2, "grpo": 0.4, "mupo": 0.45, "mupo-k1": 0.4, "mupo-k5": 0.4},
        "pass@4": {"base": 0.7, "grpo": 0.5, "dmpo": 0.6, "dmpo-replication": 0.62, "mupo": 0.68},
        "pass@16": {"base": 0.9, "grpo": 0.7},
        "entropy": {"grpo": 0.5, "dmpo": 0.3},
        "length": {"base": 40.0, "grpo": 10.0},
        "solution_distance": {"base": 0.6, "grpo": 0.1, "dmpo": 0.3, "dmpo-replication": 0.35,
                              "mupo": 0.5},
    }.get(measure, {})  # fmt: skip
    if split.startswith("step ") and measure == "diversity":
        return (0.2 if int(split.removeprefix("step ")) < 3 else 0.02) + wobble / 10
    return level.get(arm, 0.5) + wobble


def verdicts_of(results):
    return {one.hypothesis.id: one for one in judge(results)}


def test_the_claims_of_the_papers_are_stated_with_their_sources():
    stated = load_hypotheses()
    assert {one.id for one in stated.hypotheses} == CLAIMED
    assert all(
        one.source.startswith(("MUPO", "DMPO")) and one.claim.endswith(".")
        for one in stated.hypotheses
    )


def test_all_are_supported_in_a_world_in_which_they_hold(made_up):
    found = verdicts_of(made_up(as_the_papers_say, arms=ALL_ARMS))
    assert {name: one.verdict for name, one in found.items()} == dict.fromkeys(CLAIMED, "supported")
    assert all(one.adjusted >= one.p for one in found.values())


def test_none_is_supported_where_everything_is_noise(made_up):
    found = verdicts_of(made_up(arms=ALL_ARMS))
    assert {one.verdict for one in found.values()} == {"not supported"}


def test_a_clear_effect_in_the_other_direction_is_not_support(made_up):
    def turned(arm, seed, split, measure):
        return -as_the_papers_say(arm, seed, split, measure)

    found = verdicts_of(made_up(turned, arms=ALL_ARMS))
    one = found["mupo-keeps-diversity"]
    assert one.verdict == "not supported"
    assert one.p == 1.0
    assert "other side" in one.reason


def test_a_claim_of_two_parts_needs_both(made_up):
    def only_sr(arm, seed, split, measure):
        value = as_the_papers_say(arm, seed, split, measure)
        return value - 0.2 if (arm, measure) == ("dmpo", "qr") else value

    one = verdicts_of(made_up(only_sr, arms=ALL_ARMS))["dmpo-raises-both"]
    assert one.verdict == "not supported"
    assert [part.as_claimed for part in one.parts] == [True, False] or one.p > 0.05


def test_the_correction_counts_all_claims_tested_or_not(made_up):
    def weak(arm, seed, split, measure):
        # one seed against the others: p of about .02 alone
        effect = {"mupo": 0.1}.get(arm, 0.0) if measure == "solution_distance" else 0.0
        return effect + (0.095 if arm == "mupo" else 0.0) * ((seed % 4) - 1.5) if effect else 0.0

    one = verdicts_of(made_up(weak, arms=("base", "grpo", "mupo")))["mupo-keeps-diversity"]
    assert one.p < 0.05
    assert one.adjusted == pytest.approx(min(1.0, one.p * len(CLAIMED)))
    assert one.verdict == "not supported"
    assert "correction" in one.reason


def test_without_arms_seeds_or_evidence_nothing_is_tested(made_up):
    found = verdicts_of(made_up(as_the_papers_say))
    assert found["three-groups-best"].verdict == "not tested"
    assert found["three-groups-best"].reason == "not run: mupo-k1, mupo-k5"
    assert found["mupo-keeps-diversity"].verdict == "supported"
    few = verdicts_of(made_up(as_the_papers_say, arms=ALL_ARMS, seeds=(1, 2, 3, 4)))
    assert {one.verdict for one in few.values()} == {"not tested"}
    assert few["dmpo-transfers"].reason == "4 of at least 5 seeds"
    marked = verdicts_of(made_up(as_the_papers_say, arms=ALL_ARMS, marker="smoke: not evidence"))
    assert {(one.verdict, one.reason) for one in marked.values()} == {
        ("not tested", "smoke: not evidence")
    }


def test_every_base_gets_its_own_verdicts(made_up):
    found = judge(made_up(as_the_papers_say, arms=ALL_ARMS, bases=("early", "late")))
    assert [one.base for one in found] == ["early"] * 13 + ["late"] * 13


def test_a_part_is_the_weighted_sum_of_its_terms(made_up):
    results = made_up()
    stated = {one.id: one for one in load_hypotheses().hypotheses}
    part = stated["mupo-gains-at-4"].parts[0]
    values = part_values(results, "late", "in-domain", part)
    last = {(k.arm, k.seed): c for k, c in results.cells.items() if k.split == "in-domain"
            and k.step == 100}  # fmt: skip
    for seed, value in values.items():
        mupo, grpo = last["mupo", seed].metrics, last["grpo", seed].metrics
        gain_4, gain_1 = mupo["pass@4"] - grpo["pass@4"], mupo["acc@1"] - grpo["acc@1"]
        assert value == pytest.approx(gain_4 - gain_1)
    collapse = stated["grpo-collapse"].parts[0]
    curve = next(c for c in results.curves if (c.arm, c.seed) == ("grpo", 103))
    drawn = curve.columns["diversity"]
    expected = sum(drawn[15:20]) / 5 - 0.5 * sum(drawn[:3]) / 3
    assert part_values(results, "late", "in-domain", collapse)[103] == pytest.approx(expected)


def test_evidence_says_reason_numbers_and_seeds(made_up):
    one = verdicts_of(made_up(as_the_papers_say, arms=ALL_ARMS))["dmpo-raises-both"]
    text = one.evidence()
    assert text.startswith("as claimed, the interval excludes 0")
    assert text.count("8 seeds") == 2
    spread = over_seeds(list(part_values_of(made_up, one).values()))
    assert f"{spread.mean:+.3f} [{spread.low:+.3f}, {spread.high:+.3f}]" in text


def part_values_of(made_up, one):
    results = made_up(as_the_papers_say, arms=ALL_ARMS)
    return part_values(results, "late", one.hypothesis.split, one.hypothesis.parts[0])


PART = {"says": "x", "direction": "above", "terms": [{"arm": "grpo", "measure": "qr"}]}
ONE = {"id": "a", "claim": "c.", "source": "s", "parts": [PART]}


@pytest.mark.parametrize(
    ("hypotheses", "message"),
    [
        ([{**ONE, "parts": [{**PART, "terms": [{"arm": "grop", "measure": "qr"}]}]}], "'grpo'"),
        ([{**ONE, "parts": [{**PART, "direction": "up"}]}], "direction"),
        ([{**ONE, "parts": [{**PART, "terms": []}]}], "terms or a correlation"),
        ([ONE, ONE], "same id"),
        ([{**ONE, "colour": 1}], "colour"),
    ],
)
def test_a_wrong_statement_is_refused_in_one_line(hypotheses, message):
    with pytest.raises(InputError, match=message):
        read_hypotheses({"rule": {"level": 0.95, "min_seeds": 5}, "hypotheses": hypotheses})
