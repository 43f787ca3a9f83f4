"""A whole plan: models x precisions x devices x data, exported, benched, evaluated, scored, gated and shown."""
