"""Artifacts: named files that go with Feedback."""

from dataclasses import dataclass

from ._values import text

__all__ = [
    "Artifact",
    "ArtifactRetention",
    "MAX_ARTIFACTS",
    "MAX_ARTIFACT_BYTES",
]

MAX_ARTIFACTS = 1024
MAX_ARTIFACT_BYTES = 16 * 1024 * 1024

_MISSING = object()
_OTHER_NAMES = {  # that a package may know them by
    "name": {"path"},
    "media_type": {"mime_type", "content_type"},
    "content": {"data", "payload", "body", "bytes", "contents"},
}


class ArtifactRetention(str):
    """The names of how long an artifact is kept: plain strings serve as well."""

    PERMANENT = "permanent"
    BULK = "bulk"


def _checked_name(name):
    text(name, "Artifact.name")
    if "\\" in name:
        raise ValueError("Artifact.name must not hold a backslash: %r" % name)
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError("Artifact.name must be a relative POSIX path without empty, '.' or '..' parts: %r" % name)
    return name


def _given(name, value, other):
    """The one value that was given under a name or another one for the same, taken out of `other`."""
    values = [value, *(other.pop(alias) for alias in _OTHER_NAMES[name] & other.keys())]
    values = [value for value in values if value is not _MISSING]
    if len(values) != 1:
        raise TypeError("an Artifact needs its %s, once" % name)
    return values[0]


@dataclass(frozen=True, init=False)
class Artifact:
    """``Artifact(name, media_type, content, retention="permanent")``; `data` is another name of `content`."""

    name: str
    media_type: str
    content: bytes
    retention: str = "permanent"

    def __init__(self, name=_MISSING, media_type=_MISSING, content=_MISSING, retention="permanent", **other):
        name, media_type, content = map(_given, _OTHER_NAMES, (name, media_type, content), (other, other, other))
        if other:
            raise TypeError("an Artifact takes name, media_type, content and retention, not %s" % ", ".join(other))
        if not isinstance(content, bytes):
            raise TypeError("Artifact.content must be bytes, not %s" % type(content).__name__)
        if len(content) > MAX_ARTIFACT_BYTES:
            raise ValueError("Artifact.content must be at most %d bytes" % MAX_ARTIFACT_BYTES)
        retention = getattr(retention, "value", retention)
        if not isinstance(retention, str):
            raise TypeError("Artifact.retention must be a str, not %s" % type(retention).__name__)
        if retention not in ("permanent", "bulk"):
            raise ValueError("Artifact.retention must be 'permanent' or 'bulk', not %r" % retention)
        self.__dict__.update(
            name=_checked_name(name),
            media_type=text(media_type, "Artifact.media_type", one_line=True),
            content=content,
            retention=retention,
        )

    data = payload = body = property(lambda self: self.content)
    path = property(lambda self: self.name)


def __getattr__(name):
    from . import _find

    return _find(name, __name__)
