"""Slow second opinions on the fourteen tasks, sharing no code with npbench.

Written from the public formats: instances are the JSON objects that users write, answers are
whatever a model may say. ``judge`` gives the objective of a feasible answer and None for any
other; ``optimum`` tries everything.
"""

import itertools
import operator

MINIMISED = {
    "graph_coloring",
    "feedback_vertex_set",
    "vertex_cover",
    "dominating_set",
    "minimum_bisection",
    "tsp",
    "set_cover",
}


def judge(task, instance, answer):
    """The objective of a feasible answer; None where the answer is infeasible."""
    return _JUDGES[task](instance, answer)


def optimum(task, instance):
    """The best objective over all feasible answers; None where there is none."""
    values = [value for value in _ALL[task](instance) if value is not None]
    if not values:
        return None
    return min(values) if task in MINIMISED else max(values)


def candidates(task, instance, rng, count):
    """Answers of every kind for an instance: good, poor, nearly right and broken ones."""
    plain = _PLAIN[task](instance, rng, count)
    return plain + [damaged(answer, rng) for answer in plain]


def damaged(answer, rng):
    """A copy of an answer with one random fault (or, now and then, a harmless change)."""
    copy = [list(part) if isinstance(part, list) else part for part in answer]
    inner = [part for part in copy if isinstance(part, list)]
    if inner and rng.random() < 0.7:
        chosen = rng.choice(inner)
        chosen[:] = _damaged_list(chosen, rng)
        return copy
    return _damaged_list(copy, rng)


def _damaged_list(items, rng):
    items = list(items)
    strange = [-1, 99, True, False, None, 1.0, 0.5, "0", [], [0], float("nan"), 10**40]
    kind = rng.choice(["drop", "repeat", "strange", "swap", "shift", "append", "reverse"])
    if not items or kind == "append":
        return [*items, rng.choice([0, 1, 2, *strange])]
    position = rng.randrange(len(items))
    if kind == "drop":
        del items[position]
    elif kind == "repeat":
        items.insert(position, items[rng.randrange(len(items))])
    elif kind == "strange":
        items[position] = rng.choice(strange)
    elif kind == "swap":
        other = rng.randrange(len(items))
        items[position], items[other] = items[other], items[position]
    elif kind == "shift" and type(items[position]) is int:
        items[position] += rng.choice([-1, 1])
    else:
        items.reverse()
    return items


def _is_list(value):
    return isinstance(value, (list, tuple))


def _is_number(value):
    return type(value) is int


def _is_selection(answer, size):
    """Whether an answer is a list of different integers in [0, size)."""
    if not _is_list(answer) or not all(_is_number(entry) for entry in answer):
        return False
    return len(set(answer)) == len(answer) and all(0 <= entry < size for entry in answer)


def _pairs(instance):
    return {frozenset(edge[:2]) for edge in instance["edges"]}


def _parts(vertices, pairs):
    """Number of connected components."""
    parts = [{v} for v in vertices]
    for pair in pairs:
        touched = [part for part in parts if part & pair]
        parts = [part for part in parts if not part & pair] + [set().union(*touched)]
    return len(parts)


def _judge_colouring(instance, answer):
    n = instance["num_vertices"]
    if not _is_list(answer) or len(answer) != n:
        return None
    if not all(_is_number(colour) and colour >= 0 for colour in answer):
        return None
    if any(answer[u] == answer[v] for u, v in instance["edges"]):
        return None
    return len(set(answer))


def _judge_feedback(instance, answer):
    n = instance["num_vertices"]
    if not _is_selection(answer, n):
        return None
    kept = set(range(n)) - set(answer)
    pairs = {pair for pair in _pairs(instance) if pair <= kept}
    is_forest = len(pairs) == len(kept) - _parts(kept, pairs)
    return len(answer) if is_forest else None


def _judge_cover(instance, answer):
    if not _is_selection(answer, instance["num_vertices"]):
        return None
    return len(answer) if all(pair & set(answer) for pair in _pairs(instance)) else None


def _judge_domination(instance, answer):
    n = instance["num_vertices"]
    if not _is_selection(answer, n):
        return None
    reached = set(answer)
    for u, v in instance["edges"]:
        if u in answer:
            reached.add(v)
        if v in answer:
            reached.add(u)
    return len(answer) if len(reached) == n else None


def _judge_clique(instance, answer):
    if not _is_selection(answer, instance["num_vertices"]) or not answer:
        return None
    pairs = _pairs(instance)
    together = all(frozenset(two) in pairs for two in itertools.combinations(answer, 2))
    return len(answer) if together else None


def _judge_independent(instance, answer):
    if not _is_selection(answer, instance["num_vertices"]) or not answer:
        return None
    apart = not any(pair <= set(answer) for pair in _pairs(instance))
    return len(answer) if apart else None


def _judge_cycle(instance, answer):
    if not _is_list(answer) or len(answer) < 4 or not all(_is_number(v) for v in answer):
        return None
    if answer[0] != answer[-1] or not _is_selection(answer[1:], instance["num_vertices"]):
        return None
    pairs = _pairs(instance)
    steps = itertools.pairwise(answer)
    return len(answer) - 1 if all(frozenset(step) in pairs for step in steps) else None


def _judge_cut(instance, answer):
    n = instance["num_vertices"]
    if not _is_list(answer) or len(answer) != 2 or not all(_is_list(side) for side in answer):
        return None
    left, right = answer
    if not _is_selection([*left, *right], n) or len(left) + len(right) != n:
        return None
    return sum(w for u, v, w in instance["edges"] if (u in left) != (v in left))


def _judge_bisection(instance, answer):
    weight = _judge_cut(instance, answer)
    if weight is None or abs(len(answer[0]) - len(answer[1])) > 1:
        return None
    return weight


def _judge_tour(instance, answer):
    table = instance["distances"]
    if not _is_list(answer) or len(answer) != len(table) + 1:
        return None
    if not _is_selection(answer[1:], len(table)) or not _is_number(answer[0]):
        return None
    if answer[0] != answer[-1]:
        return None
    return sum(table[u][v] for u, v in itertools.pairwise(answer))


def _judge_set_cover(instance, answer):
    if not _is_selection(answer, len(instance["subsets"])):
        return None
    held = {element for j in answer for element in instance["subsets"][j]}
    return len(answer) if held >= set(range(instance["num_elements"])) else None


def _judge_subset_sum(instance, answer):
    numbers = instance["numbers"]
    if not _is_selection(answer, len(numbers)) or not answer:
        return None
    return len(answer) if sum(numbers[i] for i in answer) == instance["target"] else None


def _judge_knapsack(instance, answer):
    if not _is_selection(answer, len(instance["weights"])):
        return None
    if sum(instance["weights"][i] for i in answer) > instance["capacity"]:
        return None
    return sum(instance["values"][i] for i in answer)


def _judge_meetings(instance, answer):
    meetings, rooms = instance["meetings"], instance["rooms"]
    if not _is_list(answer):
        return None
    for row in answer:
        if not _is_list(row) or len(row) != 3 or not all(_is_number(entry) for entry in row):
            return None
        if not 0 <= row[0] < len(meetings) or not 0 <= row[1] < len(rooms):
            return None
    if len({row[0] for row in answer}) < len(answer):
        return None
    for meeting, room, start in answer:
        end = start + meetings[meeting]["duration"]
        if not any(opens <= start and end <= closes for opens, closes in instance["day"]):
            return None
        if len(meetings[meeting]["attendees"]) > rooms[room]["capacity"]:
            return None
    for one, two in itertools.combinations(answer, 2):
        common = set(meetings[one[0]]["attendees"]) & set(meetings[two[0]]["attendees"])
        minutes = [range(start, start + meetings[m]["duration"]) for m, _, start in (one, two)]
        if (common or one[1] == two[1]) and set(minutes[0]) & set(minutes[1]):
            return None
    return sum(len(meetings[meeting]["attendees"]) for meeting, _, _ in answer)


def _selections(size):
    for length in range(size + 1):
        yield from map(list, itertools.combinations(range(size), length))


def _all_selections(task, size_of):
    def values(instance):
        return (judge(task, instance, answer) for answer in _selections(size_of(instance)))

    return values


def _all_colourings(instance):
    """Values of all colourings in which colour c appears only behind colours 0..c-1."""
    n = instance["num_vertices"]

    def grow(colours):
        if len(colours) == n:
            yield judge("graph_coloring", instance, colours)
            return
        for colour in range(max(colours, default=-1) + 2):
            yield from grow([*colours, colour])

    return grow([])


def _all_splits(task):
    def values(instance):
        n = instance["num_vertices"]
        for left in _selections(n):
            yield judge(task, instance, [left, [v for v in range(n) if v not in left]])

    return values


def _all_tours(instance):
    for order in itertools.permutations(range(1, len(instance["distances"]))):
        yield judge("tsp", instance, [0, *order, 0])


def _all_cycles(instance):
    """Values of all simple cycles, each walked from its smallest vertex."""
    pairs = _pairs(instance)

    def walk(path):
        yield judge("longest_cycle", instance, [*path, path[0]])
        for vertex in range(path[0] + 1, instance["num_vertices"]):
            if vertex not in path and frozenset((path[-1], vertex)) in pairs:
                yield from walk([*path, vertex])

    for start in range(instance["num_vertices"]):
        yield from walk([start])


def starting_times(instance):
    """Starts that suffice for an optimum: a meeting can move back until something stops it.

    What stops it is an opening or the end of another meeting, whose start was stopped likewise;
    so a start is an opening time plus durations of different meetings.
    """
    sums = {0}
    for meeting in instance["meetings"]:
        sums |= {total + meeting["duration"] for total in sums}
    return sorted({opens + total for opens, _ in instance["day"] for total in sums})


def _all_schedules(instance):
    """Values of all schedules that could still beat the best one met before."""
    meetings, rooms = range(len(instance["meetings"])), range(len(instance["rooms"]))
    slots = list(itertools.product(rooms, starting_times(instance)))
    people = [len(meeting["attendees"]) for meeting in instance["meetings"]]
    best = -1

    def place(rows, left):
        nonlocal best
        value = judge("meeting_scheduling", instance, rows)
        if value is None or value + sum(people[meeting] for meeting in left) <= best:
            return
        best = max(best, value)
        yield value
        for position, meeting in enumerate(left):
            for room, start in slots:
                yield from place([*rows, [meeting, room, start]], left[position + 1 :])

    return place([], list(meetings))


def _plain_selections(size_of):
    def draw(instance, rng, count):
        size = size_of(instance)
        if 2**size <= count:
            return list(_selections(size))
        return [
            rng.sample(range(size), rng.choice([rng.randint(0, size), size, size - 1]))
            for _ in range(count)
        ]

    return draw


def _plain_colourings(instance, rng, count):
    n = instance["num_vertices"]
    answers = [list(range(n)), [7 * v + 3 for v in range(n)], [10**30 + v for v in range(n)]]
    for _ in range(count):
        colours = []
        for vertex in range(n):
            taken = {
                colours[u] for u in range(vertex) if frozenset((u, vertex)) in _pairs(instance)
            }
            colours.append(rng.choice([c for c in range(n) if c not in taken] or [0]))
        if rng.random() < 0.3:
            colours[rng.randrange(n)] = rng.randrange(n)
        answers.append(colours)
    return answers


def _plain_splits(instance, rng, count):
    n = instance["num_vertices"]
    answers = []
    for _ in range(count):
        order = rng.sample(range(n), n)
        size = rng.choice([n // 2, n // 2, (n + 1) // 2, rng.randint(0, n)])
        answers.append([order[:size], order[size:]])
    return answers


def _plain_tours(instance, rng, count):
    n = len(instance["distances"])
    orders = [rng.sample(range(n), n) for _ in range(count)]
    return [[*order, order[0]] for order in orders] + orders[:5]


def _plain_cycles(instance, rng, count):
    pairs, n = _pairs(instance), instance["num_vertices"]
    answers = []
    for _ in range(count):
        path = [rng.randrange(n)]
        while True:
            onward = [v for v in range(n) if frozenset((path[-1], v)) in pairs and v not in path]
            if not onward or (len(path) > 2 and rng.random() < 0.2):
                break
            path.append(rng.choice(onward))
        closing = [i for i, v in enumerate(path) if frozenset((path[-1], v)) in pairs]
        if closing and rng.random() < 0.8:
            path = path[rng.choice(closing) :]
        answers.append([*path, path[0]])
    return answers


def _plain_schedules(instance, rng, count):
    starts = starting_times(instance)
    meetings, rooms = len(instance["meetings"]), len(instance["rooms"])
    answers = [[]]
    for _ in range(count):
        rows = []
        for meeting in rng.sample(range(meetings), rng.randint(1, meetings)):
            start = rng.choice(starts) + rng.choice([0, 0, 0, -1, 1, 15])
            row = [meeting, rng.randrange(rooms), start]
            if judge("meeting_scheduling", instance, [*rows, row]) is not None:
                rows.append(row)
            elif rng.random() < 0.2:
                rows.append(row)
                break
        answers.append(rows)
    return answers


_vertices = operator.itemgetter("num_vertices")
_SIZES = {
    "feedback_vertex_set": _vertices,
    "vertex_cover": _vertices,
    "dominating_set": _vertices,
    "maximum_clique": _vertices,
    "maximum_independent_set": _vertices,
    "set_cover": lambda instance: len(instance["subsets"]),
    "subset_sum": lambda instance: len(instance["numbers"]),
    "knapsack": lambda instance: len(instance["weights"]),
}
_JUDGES = {
    "graph_coloring": _judge_colouring,
    "feedback_vertex_set": _judge_feedback,
    "vertex_cover": _judge_cover,
    "dominating_set": _judge_domination,
    "minimum_bisection": _judge_bisection,
    "maximum_cut": _judge_cut,
    "maximum_clique": _judge_clique,
    "maximum_independent_set": _judge_independent,
    "tsp": _judge_tour,
    "longest_cycle": _judge_cycle,
    "set_cover": _judge_set_cover,
    "subset_sum": _judge_subset_sum,
    "knapsack": _judge_knapsack,
    "meeting_scheduling": _judge_meetings,
}
_ALL = {name: _all_selections(name, size_of) for name, size_of in _SIZES.items()} | {
    "graph_coloring": _all_colourings,
    "minimum_bisection": _all_splits("minimum_bisection"),
    "maximum_cut": _all_splits("maximum_cut"),
    "tsp": _all_tours,
    "longest_cycle": _all_cycles,
    "meeting_scheduling": _all_schedules,
}
_PLAIN = {name: _plain_selections(size_of) for name, size_of in _SIZES.items()} | {
    "graph_coloring": _plain_colourings,
    "minimum_bisection": _plain_splits,
    "maximum_cut": _plain_splits,
    "tsp": _plain_tours,
    "longest_cycle": _plain_cycles,
    "meeting_scheduling": _plain_schedules,
}
