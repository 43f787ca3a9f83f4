"""The artefacts as pydantic models: the only thing all parts share."""
