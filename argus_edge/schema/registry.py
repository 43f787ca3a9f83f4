"""The artefacts by name, for `argus-edge schema NAME`: name -> "module:Class"."""

ARTIFACTS = {
    "bench": "argus_edge.schema.bench:BenchReport",
    "bundle": "argus_edge.schema.bundle:BundleManifest",
    "eval": "argus_edge.schema.evaluation:EvalReport",
    "score": "argus_edge.schema.score:ScoreReport",
    "verdict": "argus_edge.schema.verdict:Verdict",
    "comparison": "argus_edge.schema.comparison:Comparison",
    "sizing": "argus_edge.schema.sizing:Sizing",
    "judge": "argus_edge.schema.judge:JudgeCalibration",
    "judge-evaluation": "argus_edge.schema.judge:JudgeEvaluation",
}
