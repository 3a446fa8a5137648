"""laudo: the query side of an identity-validation service, to run yourself."""

__version__ = "0.1.0"
