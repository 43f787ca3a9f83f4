"""Metrics of capability: plain data in, figures and per-image sufficient statistics out.

A metric is a function of plain data (numpy arrays, lists of strings). What a score needs to resample images
is returned as columns, one row an image, named as in :mod:`argus_edge.schema.evaluation`.
"""

from __future__ import annotations

from argus_edge.evaluate.metrics.answers import answers_match, choose_answer, normalize_answer
from argus_edge.evaluate.metrics.bootstrap import (
    REPLICATES,
    image_weights,
    interval_of_bleu,
    interval_of_mean,
    interval_of_ratio,
)
from argus_edge.evaluate.metrics.captions import CaptionReferences, CaptionScores
from argus_edge.evaluate.metrics.chance import choice_chance, constant_answer_chance, retrieval_chance, vcr_chance
from argus_edge.evaluate.metrics.idf import MINIMUM_IMAGES, DocumentFrequencies
from argus_edge.evaluate.metrics.reasoning import VCR_MODES, AnswerScores, VcrScores, score_answers, score_vcr
from argus_edge.evaluate.metrics.retrieval import RetrievalScores, retrieval_from_embeddings, retrieval_from_scores
from argus_edge.evaluate.metrics.tokenizer import TOKENIZER, tokenize

__all__ = [
    "MINIMUM_IMAGES",
    "REPLICATES",
    "TOKENIZER",
    "VCR_MODES",
    "AnswerScores",
    "CaptionReferences",
    "CaptionScores",
    "DocumentFrequencies",
    "RetrievalScores",
    "VcrScores",
    "answers_match",
    "choice_chance",
    "choose_answer",
    "constant_answer_chance",
    "image_weights",
    "interval_of_bleu",
    "interval_of_mean",
    "interval_of_ratio",
    "normalize_answer",
    "retrieval_chance",
    "retrieval_from_embeddings",
    "retrieval_from_scores",
    "score_answers",
    "score_vcr",
    "tokenize",
    "vcr_chance",
]
