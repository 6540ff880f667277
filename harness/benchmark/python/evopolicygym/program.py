"""Programs: an immutable snapshot of one directory, as the Host takes it."""

import hashlib
import os
import stat
import unicodedata
from dataclasses import dataclass
from types import MappingProxyType

from .errors import ProgramChangedError, ProgramLimitError, ProgramSourceError

__all__ = ["Program", "ProgramLimits", "PROGRAM_ENTRY_POINT", "POLICY_ABI_VERSION"]

PROGRAM_ENTRY_POINT = "policy.py:make_policy"
POLICY_ABI_VERSION = "policy/v2"
_DOMAIN = b"evopolicygym/program/v1\0"


@dataclass(frozen=True)
class ProgramLimits:
    max_files: int = 1000
    max_total_bytes: int = 64 * 1024 * 1024
    max_file_bytes: int = 16 * 1024 * 1024


DEFAULT_LIMITS = ProgramLimits()


def _counted(data):
    return len(data).to_bytes(8, "big") + data


def _check_path(path):
    for part in path.split("/"):
        try:
            part.encode()
        except UnicodeEncodeError:
            raise ProgramSourceError("a Program's path is not UTF-8: %a" % path) from None
        if part in ("", ".", "..") or "\\" in part or "\0" in part:
            raise ProgramSourceError("a Program can't hold the path %r" % path)
        if unicodedata.normalize("NFC", part) != part:
            raise ProgramSourceError("a Program's path is not NFC-normalised: %r" % path)


def _entries(directory, prefix=""):
    """Yields (path, full path) of every file, without what is never part of a Program."""
    with os.scandir(directory) as scan:
        found = sorted(scan, key=lambda entry: entry.name)
    for entry in found:
        path = prefix + entry.name
        _check_path(path)
        if entry.is_symlink():
            raise ProgramSourceError("a Program can't hold a symlink: %s" % path)
        if entry.is_dir():
            if entry.name not in (".git", "__pycache__"):
                yield from _entries(entry.path, path + "/")
        elif not entry.is_file():
            raise ProgramSourceError("a Program can't hold a special file: %s" % path)
        elif not entry.name.endswith(".pyc"):
            yield path, entry.path


def _state(status):
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _read(path, full, limits):
    handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        before = os.fstat(handle)
        if before.st_size > limits.max_file_bytes:
            raise ProgramLimitError("%s is over %d bytes" % (path, limits.max_file_bytes))
        content = file.read(limits.max_file_bytes + 1)
        if _state(before) != _state(os.fstat(handle)) or len(content) != before.st_size:
            raise ProgramChangedError("%s changed while it was read" % path)
    return content


class Program:
    """``Program.from_directory(path)`` or ``Program({path: bytes})``: `files` (in order of paths) and `digest`."""

    def __init__(self, files, limits=DEFAULT_LIMITS):
        checked = {}
        for path, content in dict(files).items():
            if not isinstance(path, str) or not isinstance(content, bytes):
                raise TypeError("a Program's files are str paths and bytes")
            _check_path(path)
            if len(content) > limits.max_file_bytes:
                raise ProgramLimitError("%s is over %d bytes" % (path, limits.max_file_bytes))
            checked[path] = content
        if len(checked) > limits.max_files:
            raise ProgramLimitError("a Program has at most %d files" % limits.max_files)
        if sum(map(len, checked.values())) > limits.max_total_bytes:
            raise ProgramLimitError("a Program has at most %d bytes" % limits.max_total_bytes)
        if "policy.py" not in checked:
            raise ProgramSourceError("a Program needs policy.py at its root")
        ordered = sorted(checked.items(), key=lambda item: item[0].encode())
        self._files = MappingProxyType(dict(ordered))
        whole = hashlib.sha256(_DOMAIN)
        whole.update(_counted(PROGRAM_ENTRY_POINT.encode()) + _counted(POLICY_ABI_VERSION.encode()))
        whole.update(len(ordered).to_bytes(8, "big"))
        for path, content in ordered:
            whole.update(_counted(path.encode()) + _counted(content))
        self._digest = "sha256:" + whole.hexdigest()

    @classmethod
    def from_directory(cls, directory, limits=DEFAULT_LIMITS):
        root = os.fspath(directory)
        try:
            if not stat.S_ISDIR(os.lstat(root).st_mode):
                raise ProgramSourceError("a Program is a real directory, which %s is not" % root)
        except OSError as error:
            raise ProgramSourceError("no Program can be read at %s: %s" % (root, error.strerror)) from None
        files = {}
        for path, full in _entries(root):
            if len(files) >= limits.max_files:
                raise ProgramLimitError("a Program has at most %d files" % limits.max_files)
            files[path] = _read(path, full, limits)
        if {path for path, _ in _entries(root)} != set(files):
            raise ProgramChangedError("the files of %s changed while they were read" % root)
        return cls(files, limits)

    files = property(lambda self: self._files)
    digest = property(lambda self: self._digest)
    entry_point = property(lambda self: PROGRAM_ENTRY_POINT)

    def write_to(self, directory):
        """Writes the files below a directory, which is made when it is missing."""
        for path, content in self._files.items():
            full = os.path.join(os.fspath(directory), path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "wb") as file:
                file.write(content)

    materialize = to_directory = write_to

    def __eq__(self, other):
        return self._digest == other._digest if isinstance(other, Program) else NotImplemented

    def __hash__(self):
        return hash(self._digest)

    def __repr__(self):
        return "Program(%d files, %s)" % (len(self._files), self._digest)


def __getattr__(name):
    from . import _find

    return _find(name, __name__)
