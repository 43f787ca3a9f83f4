"""ROUGE-L of one caption, as pycocoevalcap computes it.

C.-Y. Lin. ROUGE: A Package for Automatic Evaluation of Summaries. ACL workshop 2004. The longest common subsequence is
found bit-parallel (H. Hyyrö. Bit-parallel LCS-length computation revisited. AWOCA 2004).
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["lcs_length", "rouge_l"]

BETA = 1.2


def lcs_length(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two token lists."""
    positions: dict[str, int] = {}
    for index, token in enumerate(first):
        positions[token] = positions.get(token, 0) | (1 << index)
    everything = (1 << len(first)) - 1
    row = everything
    for token in second:
        matched = row & positions.get(token, 0)
        row = (row + matched | row - matched) & everything
    return len(first) - row.bit_count()


def rouge_l(hypothesis: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Return the F-measure (beta 1.2) of the best precision and the best recall over the references.

    The two may come from different references; an empty caption counts as one empty token: pycocoevalcap's way.
    """
    candidate = hypothesis or [""]
    precision = recall = 0.0
    for tokens in references:
        reference = tokens or [""]
        common = lcs_length(candidate, reference)
        precision = max(precision, common / len(candidate))
        recall = max(recall, common / len(reference))
    if precision == 0 or recall == 0:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)
