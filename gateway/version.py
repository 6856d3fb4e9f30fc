"""Candor's version: the package's, `/readyz`'s and the API description's are this one."""

VERSION = "0.1.0"
