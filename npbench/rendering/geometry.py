"""Distances in the plane, one array of things against another; no drawing."""

import numpy as np
import numpy.typing as npt

__all__ = ["angle_gap", "box_box", "box_point", "box_segment", "crossing_angles", "point_segment"]

Array = npt.NDArray[np.float64]


def point_segment(points: Array, segments: Array) -> Array:
    """Distances (points, segments) of points (n, 2) from segments (m, 4) of x0, y0, x1, y1."""
    start, step = segments[:, :2], segments[:, 2:] - segments[:, :2]
    offset = points[:, None] - start
    squared = np.maximum((step**2).sum(axis=-1), 1e-12)
    along = np.clip((offset * step).sum(axis=-1) / squared, 0.0, 1.0)
    nearest = offset - along[..., None] * step
    return np.asarray(np.hypot(nearest[..., 0], nearest[..., 1]))


def box_point(boxes: Array, points: Array) -> Array:
    """Distances (boxes, points) of boxes (k, 4) from points (n, 2); 0 inside."""
    low, high = boxes[:, None, :2], boxes[:, None, 2:]
    outside = np.maximum(np.maximum(low - points, points - high), 0.0)
    return np.hypot(outside[..., 0], outside[..., 1])


def box_box(first: Array, second: Array) -> Array:
    """Distances (k, l) between boxes (k, 4) and (l, 4); 0 where they touch or overlap."""
    after = second[None, :, :2] - first[:, None, 2:]
    before = first[:, None, :2] - second[None, :, 2:]
    apart = np.maximum(np.maximum(after, before), 0.0)
    return np.hypot(apart[..., 0], apart[..., 1])


def box_segment(boxes: Array, segments: Array) -> Array:
    """Distances (boxes, segments) of boxes (k, 4) from segments (m, 4); 0 where they meet."""
    corners = boxes[:, [0, 1, 2, 1, 0, 3, 2, 3]].reshape(-1, 2)
    from_corners = point_segment(corners, segments).reshape(len(boxes), 4, len(segments))
    from_starts = box_point(boxes, segments[:, :2])
    from_ends = box_point(boxes, segments[:, 2:])
    nearest = np.minimum(np.minimum(from_starts, from_ends), from_corners.min(axis=1))
    return np.where(_meets(boxes, segments), 0.0, nearest)


def _meets(boxes: Array, segments: Array) -> npt.NDArray[np.bool_]:
    """Whether a segment enters a box: the slab test."""
    start = segments[None, :, :2]
    step = segments[:, 2:] - segments[:, :2]
    step = np.where(np.abs(step) < 1e-9, 1e-9, step)[None]
    first = (boxes[:, None, :2] - start) / step
    second = (boxes[:, None, 2:] - start) / step
    enters = np.minimum(first, second).max(axis=-1)
    leaves = np.maximum(first, second).min(axis=-1)
    return np.asarray((enters <= leaves) & (leaves >= 0.0) & (enters <= 1.0))


def crossing_angles(segments: Array) -> Array:
    """Acute angles (m, m) in degrees at which segments (m, 4) cross; 90 where they do not."""
    start, end = segments[:, :2], segments[:, 2:]
    step = end - start

    def side(points: Array) -> Array:
        """On which side of each segment (rows) each point (columns) lies."""
        offset = points[None] - start[:, None]
        return np.asarray(step[:, None, 0] * offset[..., 1] - step[:, None, 1] * offset[..., 0])

    parted = side(start) * side(end) < 0.0
    length = np.maximum(np.hypot(step[:, 0], step[:, 1]), 1e-12)
    turn = step[:, None, 0] * step[None, :, 1] - step[:, None, 1] * step[None, :, 0]
    sine = np.abs(turn) / (length[:, None] * length[None, :])
    return np.where(parted & parted.T, np.degrees(np.arcsin(np.minimum(sine, 1.0))), 90.0)


def angle_gap(first: float, second: float) -> float:
    """The angle between two directions in degrees, in [0, 180].

    Example:
        >>> angle_gap(359.0, 2.0)
        3.0
    """
    return abs((first - second + 180.0) % 360.0 - 180.0)
