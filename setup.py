"""Maps the top-level worlds (agents, exporters, profiles) and the pages into the one import package."""

from setuptools import find_packages, setup

MAPPED = ("agents", "exporters", "profiles", "docs")

packages = find_packages(include=["argus_edge", "argus_edge.*"])
package_dir = {"argus_edge": "argus_edge"}
for top in MAPPED:
    packages += ["argus_edge." + name for name in [top, *(f"{top}.{sub}" for sub in find_packages(top))]]
    package_dir[f"argus_edge.{top}"] = top

setup(
    packages=packages,
    package_dir=package_dir,
    package_data={
        "argus_edge": [
            "py.typed",
            "**/*.yaml",
            "**/*.json",
            "**/*.csv",
            "**/*.txt",
            "**/*.html",
            "**/*.j2",
            "**/*.css",
            "**/*.js",
            "**/*.jpg",
            "**/*.jsonl",
            "evaluate/datasets/sample/LICENCES.md",
        ],
        "argus_edge.profiles": ["*/*.yaml", "*/*.json", "*/*/*.yaml", "*/*/*.json"],
        "argus_edge.docs": ["*.md", "images/*"],
    },
)
