"""The conformal methods by name; adding one is a new file here and one line."""

from argus_edge.registry import Registry

__all__ = ["DEFAULT", "METHODS"]

DEFAULT = "integer"

METHODS = Registry(
    "conformal method",
    {
        "integer": "argus_edge.judge.methods.integer:IntegerIntervals",
        "integer-cross": "argus_edge.judge.methods.integer_cross:CrossIntegerIntervals",
        "naive": "argus_edge.judge.methods.naive:NaiveSplit",
        "cqr": "argus_edge.judge.methods.cqr:ConformalizedQuantiles",
        "cqr-asymmetric": "argus_edge.judge.methods.cqr:AsymmetricConformalizedQuantiles",
        "chr": "argus_edge.judge.methods.chr:HistogramRegression",
        "lvd": "argus_edge.judge.methods.lvd:LocallyValidDiscriminative",
        "boosted-cqr": "argus_edge.judge.methods.boosted:BoostedQuantiles",
        "boosted-lcp": "argus_edge.judge.methods.boosted:BoostedLocal",
        "r2ccp": "argus_edge.judge.methods.r2ccp:RegressionAsClassification",
        "ordinal-aps": "argus_edge.judge.methods.ordinal_aps:OrdinalAdaptiveSets",
    },
)
