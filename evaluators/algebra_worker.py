r"""A process that decides symbolic equality with Math-Verify and sympy, one request at a time.

Run as ``python -m evaluators.algebra_worker``; ``evaluators.worker_pool`` owns it and kills it at
the deadline. It reads one JSON object a line and writes one a line:

- ``{"id", "op": "equal", "gold", "answer"}`` gives ``{"id", "verdict"}`` with ``equal``,
  ``different``, ``gold_unparsed`` or ``answer_unparsed``;
- ``{"id", "op": "value", "answer"}`` gives ``{"id", "verdict": "value", "value"}`` (a decimal
  string) or ``answer_unparsed``.

A line that it cannot serve gives ``{"id", "verdict": "error", "reason"}``.
"""

import json
import os
import resource
import sys
from collections.abc import Iterator
from typing import IO, Any

__all__ = ["main"]

_POINTS = (
    "7/5", "-11/7", "23/10", "-9/4", "13/3", "5/17", "-3/8", "31/6", "-19/5", "2/7", "41/9", "-1/3",
)  # fmt: skip
_DIGITS = 40
_NEEDED = 4
_TINY = "1e-25"
_ZERO = "1e-60"


class _UnparsedError(ValueError):
    """A text that the LaTeX parser refuses."""


def main() -> int:
    """Serves requests from standard input until it ends; returns the exit status.

    ``NPBENCH_WORKER_MEMORY`` (bytes) bounds the address space and ``NPBENCH_WORKER_SECONDS`` the
    processor time of one request, so that a worker whose owner was killed ends by itself.
    """
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    # What a library prints must not get between the replies.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        import math_verify  # noqa: F401
        import sympy  # noqa: F401
    except ImportError as error:
        _write(replies, {"id": 0, "verdict": "missing", "reason": str(error)})
        return 1
    _bound_memory(int(os.environ.get("NPBENCH_WORKER_MEMORY", "0")))
    seconds = int(os.environ.get("NPBENCH_WORKER_SECONDS", "0"))
    # what the libraries load with their first question is not held against the caller's first one
    _serve({"op": "equal", "gold": r"\frac{x}{2} = 1", "answer": r"\sqrt{x} + 1"})
    _serve({"op": "equal", "gold": "(x+1)^2", "answer": "x^2+2x+1"})
    _serve({"op": "value", "answer": r"\pi"})
    _write(replies, {"id": 0, "verdict": "ready"})
    for line in sys.stdin:
        _bound_processor_time(seconds)
        request: Any = {}
        try:
            request = json.loads(line)
            reply = _serve(request)
        except Exception as error:  # noqa: BLE001 - the one boundary that records failures
            reply = {"verdict": "error", "reason": f"{type(error).__name__}: {error}"[:200]}
        identifier = request.get("id") if isinstance(request, dict) else None
        _write(replies, {"id": identifier, **reply})
    return 0


def _serve(request: dict[str, Any]) -> dict[str, str]:
    import sympy

    try:
        answer = _parse(request["answer"])
    except _UnparsedError:
        answer = None
    if request["op"] == "value":
        is_expression = isinstance(answer, sympy.Expr)
        number = sympy.N(_evaluated(answer), _DIGITS) if is_expression else None
        if number is None or not (number.is_number and number.is_real):
            return {"verdict": "answer_unparsed"}
        return {"verdict": "value", "value": str(number)}
    try:
        gold = _parse(request["gold"])
    except _UnparsedError:
        return {"verdict": "gold_unparsed"}
    if answer is None:
        return {"verdict": "answer_unparsed"}
    return {"verdict": "equal" if _equal(gold, answer) else "different"}


def _parse(text: str) -> Any:
    """The sympy object of a whole LaTeX text; a parser that stops half-way is a refusal."""
    from latex2sympy2_extended import (  # type: ignore[import-untyped, unused-ignore]
        NormalizationConfig,
        latex2sympy,
        normalize_latex,
    )
    from latex2sympy2_extended.latex2sympy2 import (  # type: ignore[import-untyped, unused-ignore]
        ConversionConfig,
    )
    from sympy import I, Symbol

    cleaning = NormalizationConfig(
        basic_latex=True,
        units=False,
        malformed_operators=True,
        nits=True,
        boxed="none",
        equations=False,
    )
    try:
        parsed = latex2sympy(
            normalize_latex(text, cleaning),
            normalization_config=None,
            conversion_config=ConversionConfig(lowercase_symbols=False),
        )
        if hasattr(parsed, "subs"):
            parsed = parsed.subs(Symbol("i"), I)
    except Exception as error:
        raise _UnparsedError(text) from error
    if parsed is None:
        raise _UnparsedError(text)
    return parsed


def _equal(gold: Any, answer: Any) -> bool:
    import sympy
    from math_verify import verify

    if type(gold) is type(answer) and gold == answer:
        return True
    equations = [isinstance(side, sympy.Equality) for side in (gold, answer)]
    if all(equations):
        return _same_up_to_factor(gold.lhs - gold.rhs, answer.lhs - answer.rhs)
    if any(equations):
        return False
    if isinstance(gold, sympy.Expr) and isinstance(answer, sympy.Expr):
        return _same_expression(gold, answer)
    if isinstance(gold, sympy.MatrixBase) and isinstance(answer, sympy.MatrixBase):
        return gold.shape == answer.shape and all(
            _same_expression(first, second) for first, second in zip(gold, answer, strict=True)
        )
    if isinstance(gold, sympy.Expr) or isinstance(answer, sympy.Expr):
        return False
    return bool(verify(gold, answer, strict=True, timeout_seconds=None))


def _same_expression(gold: Any, answer: Any) -> bool:
    """Whether the difference vanishes at rational points, wherever both sides are real there."""
    import sympy

    difference = _exact(gold) - _exact(answer)
    if difference == 0:
        return True
    if difference.has(sympy.Integral, sympy.Sum, sympy.Limit, sympy.Derivative, sympy.Product):
        difference = difference.doit()
    real = complex_ = 0
    for value, is_real in _values(difference, scale=gold):
        if value is None or value > sympy.Float(_TINY):
            return False
        real += is_real
        complex_ += not is_real
        if real >= _NEEDED:
            return True
    return real + complex_ > 0


def _same_up_to_factor(gold: Any, answer: Any) -> bool:
    """Whether two left sides of ``... = 0`` differ by a constant factor."""
    import sympy

    gold, answer = _exact(gold), _exact(answer)
    if gold.free_symbols != answer.free_symbols:
        return False
    if not gold.free_symbols:
        return bool(sympy.simplify(gold) == 0) == bool(sympy.simplify(answer) == 0)
    ratio = None
    for number, point in enumerate(_assignments(gold.free_symbols)):
        first, second = (_evaluated(side.subs(point)) for side in (gold, answer))
        if not (first.is_number and second.is_number) or first == 0 or second == 0:
            if (first == 0) != (second == 0):
                return False
            continue
        current = second / first
        if ratio is not None and abs(sympy.N(current / ratio - 1, _DIGITS)) > sympy.Float(_TINY):
            return False
        ratio = current if ratio is None else ratio
        if number > _NEEDED:
            break
    return ratio is not None


def _values(difference: Any, *, scale: Any) -> Iterator[tuple[Any, bool]]:
    """Size of the difference relative to both sides at points; real points first, then complex.

    A point without a value (a pole) is left out; None where nothing can be evaluated.
    """
    import sympy

    symbols = difference.free_symbols | scale.free_symbols
    later = []
    found = False
    for point in _assignments(symbols):
        value, size = (_evaluated(side.subs(point)) for side in (difference, scale))
        if not value.is_number or not size.is_number:
            break
        value, size = sympy.N(value, _DIGITS), sympy.N(size, _DIGITS)
        if not (value.is_finite and size.is_finite):
            continue
        size = abs(size) + abs(size - value)
        relative = abs(value) / size if size > sympy.Float(_ZERO) else sympy.Float(0)
        found = True
        if value.is_extended_real and size.is_extended_real:
            yield relative, True
        else:
            later.append(relative)
    if not found:
        yield None, False
    yield from ((relative, False) for relative in later[:_NEEDED])


def _assignments(symbols: Any) -> Iterator[dict[Any, Any]]:
    import sympy

    ordered = sorted(symbols, key=str)
    rounds = len(_POINTS) if ordered else 1
    for shift in range(rounds):
        yield {
            symbol: sympy.Rational(_POINTS[(shift + 5 * place) % len(_POINTS)]) + place
            for place, symbol in enumerate(ordered)
        }


def _evaluated(expression: Any) -> Any:
    return expression.doit() if hasattr(expression, "doit") else expression


def _exact(expression: Any) -> Any:
    """``expression`` with its decimals as fractions, so that equality is not a matter of digits."""
    import sympy

    if not expression.has(sympy.Float):
        return expression
    return expression.xreplace(
        {number: sympy.Rational(str(number)) for number in expression.atoms(sympy.Float)}
    )


def _bound_memory(limit: int) -> None:
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _bound_processor_time(seconds: int) -> None:
    if seconds:
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(used.ru_utime + used.ru_stime) + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _write(stream: IO[str], reply: dict[str, Any]) -> None:
    stream.write(json.dumps(reply) + "\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
