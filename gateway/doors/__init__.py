"""Front doors: other protocols, whose official clients work unchanged. A package is a door; each
translates and keeps nothing itself.
"""
