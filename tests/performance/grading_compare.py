"""Prints our error count beside Math-Verify's and mathruler's on the handed grading rows.

Run: ``python tests/performance/grading_compare.py [--mathruler-python PATH] [--show]``. Math-Verify
gets the reply as written and the gold in dollar signs; mathruler gets its own extraction. mathruler
is not installed here; another interpreter that has it can be named, for example after
``python -m venv /tmp/mathruler && /tmp/mathruler/bin/pip install mathruler pylatexenc tqdm sympy``.
"""

import argparse
import json
import logging
import subprocess
import sys
from pathlib import Path

from evaluators.grading import Gold, grade
from evaluators.verdicts import AnswerType

CASES = Path(__file__).parent.parent / "evaluators" / "cases" / "grading.jsonl"
MATHRULER_PYTHON = "/tmp/mathruler/bin/python"
MATHRULER = """
import json, sys
from mathruler.grader import extract_boxed_content, grade_answer
for line in sys.stdin:
    row = json.loads(line)
    try:
        verdict = bool(grade_answer(extract_boxed_content(row["reply"]), row["gold"]))
    except Exception as error:
        verdict = type(error).__name__
    print(json.dumps(verdict), flush=True)
"""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--mathruler-python", default=MATHRULER_PYTHON)
    arguments.add_argument("--show", action="store_true", help="list the rows each one gets wrong")
    options = arguments.parse_args()
    rows = [json.loads(line) for line in CASES.read_text("utf-8").splitlines()]
    columns = {
        "ours": [ours(row) for row in rows],
        "Math-Verify": [math_verify(row) for row in rows],
        "mathruler": mathruler(rows, options.mathruler_python),
    }
    print(f"{len(rows)} rows of {CASES.name}")
    for name, verdicts in columns.items():
        if isinstance(verdicts, str):
            print(f"{name:<12} skipped: {verdicts}")
            continue
        wrong = [row["id"] for row, got in zip(rows, verdicts, strict=True) if got != row["expect"]]
        print(f"{name:<12} {len(wrong):>3} wrong")
        if options.show and wrong:
            print("  " + " ".join(wrong))
    return (
        0
        if all(got == row["expect"] for row, got in zip(rows, columns["ours"], strict=True))
        else 1
    )


def ours(row: dict) -> bool:
    gold = Gold(row["gold"], AnswerType(row["answer_type"]), row.get("precision"))
    return grade(row["reply"], gold).correct


def math_verify(row: dict) -> bool:
    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)
    return bool(verify(parse(f"${row['gold']}$"), parse(row["reply"])))


def mathruler(rows: list[dict], python: str) -> "list[bool | str] | str":
    probe = [python, "-c", "import mathruler.grader"]
    if not Path(python).exists():
        return f"{python} does not exist"
    if subprocess.run(probe, capture_output=True, check=False).returncode:
        return f"{python} cannot import mathruler"
    text = "".join(json.dumps(row) + "\n" for row in rows)
    result = subprocess.run(
        [python, "-c", MATHRULER],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    verdicts = [json.loads(line) for line in result.stdout.splitlines()]
    if len(verdicts) != len(rows):
        return f"it stopped after {len(verdicts)} rows: {result.stderr.strip().splitlines()[-1:]}"
    return verdicts


if __name__ == "__main__":
    sys.exit(main())
