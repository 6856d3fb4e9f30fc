"""Why something of the web is not there."""


class FetchRefused(Exception):
    """It was not fetched; the text is a sentence for the model and the person."""
