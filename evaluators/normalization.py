r"""Brings two spellings of one answer to one form, without touching what the answer says.

What survives: brackets of every kind, signs, indices, bases, the order of members. What goes:
dollar signs around mathematics, text wrappers, sizes and spaces of LaTeX, Unicode twins of LaTeX
commands, damage that JSON escapes did to a command (a form feed followed by ``rac``).
"""

import re
import unicodedata

__all__ = ["DEGREE", "comparison_key", "is_words", "normalize", "unwrap_text"]

DEGREE = "°"
"""How a degree sign looks after normalisation, however it was written."""

# "\f" + "rac" and the like: a backslash command read as a JSON or Python escape.
_DAMAGED = (
    (re.compile(r"\x0c(?=rac|box)"), r"\\f"),
    (re.compile(r"\t(?=ext|imes|an\b|heta|frac|o\b|riangle)"), r"\\t"),
    (re.compile(r"\x08(?=oxed|eta|inom|egin|ar\b|f\b)"), r"\\b"),
    (re.compile(r"\r(?=ight|ho\b|angle)"), r"\\r"),
)
_CHARACTERS = {
    "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "×": r"\times ", "⋅": r"\cdot ",
    "·": r"\cdot ", "÷": r"\div ", "≤": r"\le ", "≥": r"\ge ", "⩽": r"\le ", "⩾": r"\ge ",
    "≠": r"\ne ", "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ", "±": r"\pm ",
    "≈": r"\approx ", "√": r"\sqrt ", "∅": r"\emptyset ", "∠": r"\angle ", "△": r"\triangle ",
    "π": r"\pi ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ", "δ": r"\delta ",
    "θ": r"\theta ", "λ": r"\lambda ", "μ": r"\mu ", "σ": r"\sigma ", "φ": r"\phi ",
    "ω": r"\omega ", "º": DEGREE, "˚": DEGREE, "′": "'", "’": "'", "‘": "'", "“": '"', "”": '"',
    "，": ", ", "、": ", ", "。": ".", "：": ":", "；": ";", "\u200b": "", "\ufeff": "",
    "∶": ":", "⁄": "/", "∕": "/",
}  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_SUBSCRIPTS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SUBSCRIPT_RUN = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_TRANSLATION = str.maketrans(_CHARACTERS)

_WRAPPERS = (
    "text|textbf|textit|textrm|texttt|textsf|textnormal|mathrm|mathbf|mathit|mathsf|mathtt|"
    "mbox|hbox|operatorname|bm|boldsymbol|boxed|fbox|emph|underline|mathord"
)
_WRAPPER = re.compile(rf"\\(?:{_WRAPPERS})\*?\s*\{{([^{{}}]*)\}}")
_WRAPPER_NESTED = re.compile(
    rf"\\(?:{_WRAPPERS})\*?\s*\{{((?:[^{{}}]|\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}})*)\}}"
)
_BROKEN_DEGREE = re.compile(r"掳|Â°|â°|\\degree\b|\^\s*\{?\s*\\(?:circ|degree)\s*\}?|\\circ\b")
_SPACES = re.compile(r"\\[,;:>\s]|\\q?quad\b|\\(?:thin|med|thick)space\b|~|\\\\(?=\s*$)")
_FENCES = re.compile(r"\\(?:left|right)(?![A-Za-z])\s*\.?")
_SIZES = re.compile(
    r"\\(?:middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits|"
    r"rm|bf|it|large|Large|small)(?![A-Za-z])\s*"
)
_SYNONYMS = (
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\(?:leq|leqslant|leqq)(?![A-Za-z])"), r"\\le "),
    (re.compile(r"\\(?:geq|geqslant|geqq)(?![A-Za-z])"), r"\\ge "),
    (re.compile(r"\\neq(?![A-Za-z])"), r"\\ne "),
    (re.compile(r"\\lt(?![A-Za-z])"), "<"),
    (re.compile(r"\\gt(?![A-Za-z])"), ">"),
    (re.compile(r"\\lbrace(?![A-Za-z])"), r"\\{"),
    (re.compile(r"\\rbrace(?![A-Za-z])"), r"\\}"),
    (re.compile(r"\\lbrack(?![A-Za-z])"), "["),
    (re.compile(r"\\rbrack(?![A-Za-z])"), "]"),
    (re.compile(r"\\colon(?![A-Za-z])"), ":"),
    (re.compile(r"\\varnothing(?![A-Za-z])"), r"\\emptyset "),
    (re.compile(r"\\ast(?![A-Za-z])"), r"\\cdot "),
    (re.compile(r"\\var(?=(?:phi|theta|epsilon|rho|sigma)(?![A-Za-z]))"), r"\\"),
    (re.compile(r"<="), r"\\le "),
    (re.compile(r">="), r"\\ge "),
    (re.compile(r"!="), r"\\ne "),
    (re.compile(r"(?<=[\w)\]}])\s*\*\*\s*(?=[\w({\\+-])"), "^"),
    (re.compile(r"(?<![A-Za-z\\])(?:infinity|infty|Infinity)(?![A-Za-z])"), r"\\infty "),
    (re.compile(r"(?<![A-Za-z0-9\\])oo(?![A-Za-z0-9])"), r"\\infty "),
    (re.compile(r"\+\s*\\infty"), r"\\infty"),
)
_ROOT = re.compile(r"\\sqrt\s*(?:\((?P<group>[^()]*)\)|(?P<token>\d+(?:\.\d+)?|\\?[a-zA-Z]+))")
_PLAIN_FUNCTION = re.compile(
    r"(?<![A-Za-z\\])(pi(?![A-Za-z])|(?:sqrt|arcsin|arccos|arctan|sin|cos|tan|cot|sec|csc|log|ln|exp)"
    r"(?=\s*(?:[\d({\\^]|[a-z]\b)))"
)
_THIN_SEPARATOR = re.compile(r"(?<=\d)\s*(?:\{,\}|,\s*\\!)\s*(?=\d)")
_SPACED_SEPARATOR = re.compile(r"(?<=\d)\\,(?=\d{3}(?!\d))")
_DIGIT_BLANK_DIGIT = re.compile(r"(?<=\d)\s+(?=[\d.])")
_WORDS = re.compile(r"[^\W\d_]{2,}(?:[\s'\-/&.,]+[^\W\d_]+)*")


def normalize(text: str) -> str:
    r"""``text`` with one spelling for each thing that LaTeX or Unicode spells in several ways.

    Example:
        >>> normalize(r"$\dfrac{1}{2} \text{ cm}$"), normalize("\frac{17}{6}"), normalize("64掳")
        ('\\frac{1}{2} cm', '\\frac{17}{6}', '64°')
        >>> normalize(r"\left(5,\, 2\right)"), normalize("2{,}000")
        ('(5, 2)', '2,000')
    """
    text = text.replace("\x00", " ")
    for pattern, replacement in _DAMAGED:
        text = pattern.sub(replacement, text)
    text = _BROKEN_DEGREE.sub(DEGREE, text)
    text = _SUPERSCRIPT_RUN.sub(lambda run: f"^{{{run[0].translate(_SUPERSCRIPTS)}}}", text)
    text = _SUBSCRIPT_RUN.sub(lambda run: f"_{{{run[0].translate(_SUBSCRIPTS)}}}", text)
    text = re.sub(
        "[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞]",
        lambda found: r"\frac{{{}}}{{{}}}".format(
            *unicodedata.normalize("NFKC", found[0]).split("⁄")
        ),
        text,
    )
    text = unicodedata.normalize("NFKC", text.translate(_TRANSLATION)).translate(_TRANSLATION)
    text = re.sub(r"(?<!\\)\$", " ", text)
    text = _THIN_SEPARATOR.sub(",", text)
    text = _SPACED_SEPARATOR.sub(",", text).replace(r"\!", "").replace("{:}", ":")
    text = re.sub(r"(?<!\\)\\[()\[\]]", " ", text)
    text = unwrap_text(text)
    text = _SIZES.sub("", _FENCES.sub("", text))
    text = _SPACES.sub(" ", text).replace(r"\%", "%").replace(r"\&", "&")
    for pattern, replacement in _SYNONYMS:
        text = pattern.sub(replacement, text)
    text = _PLAIN_FUNCTION.sub(r"\\\1", text)
    text = _ROOT.sub(_braced_root, text)
    text = " ".join(text.split())
    previous = None
    while previous != text:
        previous = text
        text = re.sub(r"^(?:\*\*|__|`+)\s*(.*?)\s*(?:\*\*|__|`+)$", r"\1", text)
        if not text.endswith(".."):
            text = re.sub(r"\s*[.,;:]$", "", text)
        if re.fullmatch(r"\{[^{},;]*\}", text):
            text = text[1:-1].strip()
    return text


def unwrap_text(text: str) -> str:
    r"""``text`` with ``\text{...}`` and its kin replaced by their contents, inner ones first.

    Example:
        >>> unwrap_text(r"15\text{ cm}"), unwrap_text(r"\text{\frac{2}{5}}")
        ('15  cm ', ' \\frac{2}{5} ')
    """
    for _ in range(8):
        shorter = _WRAPPER.sub(r" \1 ", text)
        if shorter == text:
            shorter = _WRAPPER_NESTED.sub(r" \1 ", text)
        if shorter == text:
            break
        text = shorter
    return text


def comparison_key(normalized: str) -> str:
    """What two normalised answers are compared by: no blanks, and no case where they are words.

    A blank between two digits stays, because 3 2/5 is not 32/5.

    Example:
        >>> comparison_key("( 5, 2 )"), comparison_key("3 2/5"), comparison_key("Right Triangle")
        ('(5,2)', '3 2/5', 'right triangle')
    """
    if is_words(normalized):
        words = re.sub(r"[\s\-]+", " ", normalized).casefold()
        return re.sub(r"^(?:the|an?)\s+(?=\S)", "", words)
    spaced = _DIGIT_BLANK_DIGIT.sub("\x00", normalized)
    return "".join(spaced.split()).replace("\x00", " ")


def is_words(normalized: str) -> bool:
    """Whether an answer is one or more words and nothing else.

    Example:
        >>> is_words("right triangle"), is_words("x"), is_words("2 apples")
        (True, False, False)
    """
    return _WORDS.fullmatch(normalized) is not None


def _braced_root(match: re.Match[str]) -> str:
    inside = match["group"] if match["group"] is not None else match["token"]
    return rf"\sqrt{{{inside}}}"
