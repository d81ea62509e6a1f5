import numpy as np
import pytest
from PIL import Image, ImageDraw

from trainers.transforms import DEFAULT_TRANSFORMS, FLIPS, TRANSFORMS, vary

Size = tuple[int, int]


@pytest.fixture
def arrow() -> Image.Image:
    """A red arrow that points up, its tip near the top left; a blue dot at its lower right."""
    image = Image.new("RGB", (60, 100), "white")
    draw = ImageDraw.Draw(image)
    draw.line([(20, 80), (20, 20)], fill="black", width=4)
    draw.polygon([(10, 30), (30, 30), (20, 8)], fill="red")
    draw.ellipse([(42, 78), (52, 88)], fill="blue")
    return image


def place(image: Image.Image, colour: tuple[int, int, int]) -> tuple[str, str]:
    """Where a colour's centre lies: (left or right, top or bottom)."""
    rows, columns = np.nonzero((np.asarray(image.convert("RGB")) == colour).all(axis=2))
    side = "left" if columns.mean() < image.width / 2 else "right"
    return side, "top" if rows.mean() < image.height / 2 else "bottom"


def way(image: Image.Image) -> str:
    """Which way the arrow points: from the middle of its shaft to its head."""
    pixels = np.asarray(image.convert("RGB"))
    head = np.argwhere((pixels == (255, 0, 0)).all(axis=2)).mean(axis=0)
    shaft = np.argwhere((pixels == (0, 0, 0)).all(axis=2)).mean(axis=0)
    down, right = head - shaft
    if abs(down) > abs(right):
        return "down" if down > 0 else "up"
    return "right" if right > 0 else "left"


@pytest.mark.parametrize(
    ("name", "points", "tip", "dot", "words"),
    [
        (
            "rotate-90-clockwise",
            "right",
            ("right", "top"),
            ("left", "bottom"),
            "90 degrees clockwise",
        ),
        (
            "rotate-90-counterclockwise",
            "left",
            ("left", "bottom"),
            ("right", "top"),
            "90 degrees counterclockwise",
        ),
        ("rotate-180", "down", ("right", "bottom"), ("left", "top"), "180 degrees"),
        ("flip-horizontal", "up", ("right", "top"), ("left", "bottom"), "left to right"),
        ("flip-vertical", "down", ("left", "bottom"), ("right", "top"), "top to bottom"),
        ("flip-both", "down", ("right", "bottom"), ("left", "top"), "left to right and top to"),
    ],
)
def test_the_hint_says_what_the_pixels_show(
    arrow: Image.Image,
    name: str,
    points: str,
    tip: tuple[str, str],
    dot: tuple[str, str],
    words: str,
) -> None:
    assert (way(arrow), place(arrow, (255, 0, 0)), place(arrow, (0, 0, 255))) == (
        "up",
        ("left", "top"),
        ("right", "bottom"),
    )
    found = vary(arrow, "Q", np.random.default_rng(0), probability=1.0, names=[name])
    assert way(found.image) == points
    assert place(found.image, (255, 0, 0)) == tip
    assert place(found.image, (0, 0, 255)) == dot
    assert words in found.prompt
    quarter = name.startswith("rotate-90")
    assert found.image.size == ((100, 60) if quarter else (60, 100))


@pytest.mark.parametrize("sigma", [10, 25, 50])
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "L", "P"])
def test_noise_has_the_stated_strength_and_leaves_transparency_alone(sigma: int, mode: str) -> None:
    grey = Image.new("RGBA", (80, 80), (128, 128, 128, 200)).convert(mode)
    changed = TRANSFORMS[f"noise-{sigma}"].apply(grey, np.random.default_rng(1))
    values = np.asarray(changed, dtype=float)
    colours = values[..., :3] if values.ndim == 3 else values
    assert colours.std() == pytest.approx(sigma, rel=0.05)
    assert colours.mean() == pytest.approx(128, abs=2)
    if mode == "RGBA":
        assert (values[..., 3] == 200).all()


def test_the_hint_stands_once_before_the_prompt(arrow: Image.Image) -> None:
    prompt = "Look: <image>\nHow long is the arrow?"
    for name, transform in TRANSFORMS.items():
        found = vary(arrow, prompt, np.random.default_rng(0), probability=1.0, names=[name])
        assert found.prompt == f"{transform.hint}\n{prompt}"
        assert found.transform == name


def test_flips_come_by_choice_only_and_all_others_are_drawn_alike(arrow: Image.Image) -> None:
    assert not set(FLIPS) & set(DEFAULT_TRANSFORMS)
    assert set(FLIPS) | set(DEFAULT_TRANSFORMS) == set(TRANSFORMS)
    rng = np.random.default_rng(3)
    drawn = [vary(arrow, "Q", rng).transform for _ in range(1500)]
    assert sum(name is not None for name in drawn) / 1500 == pytest.approx(0.3, abs=0.04)
    counts = [drawn.count(name) for name in DEFAULT_TRANSFORMS]
    assert sum(counts) == 1500 - drawn.count(None)
    assert min(counts) > 45


def test_the_original_is_kept_where_nothing_is_drawn(arrow: Image.Image) -> None:
    before = arrow.tobytes()
    found = vary(arrow, "Q", np.random.default_rng(0), probability=0.0)
    assert (found.image, found.prompt, found.transform) == (arrow, "Q", None)
    vary(arrow, "Q", np.random.default_rng(0), probability=1.0, names=["noise-50"])
    assert arrow.tobytes() == before


def test_the_same_generator_state_gives_the_same_variant(arrow: Image.Image) -> None:
    first, second = (vary(arrow, "Q", np.random.default_rng(8), probability=1.0) for _ in range(2))
    assert first.transform == second.transform
    assert first.image.tobytes() == second.image.tobytes()


def test_settings_out_of_range_are_refused(arrow: Image.Image) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"probability must lie in \[0, 1\], got 1\.5"):
        vary(arrow, "Q", rng, probability=1.5)
    with pytest.raises(ValueError, match="at least 1 transform"):
        vary(arrow, "Q", rng, names=[])
    with pytest.raises(ValueError, match="did you mean 'rotate-180'"):
        vary(arrow, "Q", rng, names=["rotate-18"])
