"""Calling what a package defines, however it takes its arguments."""


def calling(function, names):
    """Calls `function` with values in the order of `names`, by position or, where it wants that, by name."""
    import inspect

    try:
        entries = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return function
    keywords = {entry.name for entry in entries if entry.kind is entry.KEYWORD_ONLY} & set(names)
    placed = [entry.name for entry in entries if entry.kind is entry.POSITIONAL_OR_KEYWORD]
    if not keywords and (len(placed) < len(names) or set(placed[: len(names)]) != set(names)):
        return function
    return lambda *values: function(**dict(zip(names, values)))
