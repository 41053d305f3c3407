"""Pictures of models, solutions and radius paths, in one style."""
