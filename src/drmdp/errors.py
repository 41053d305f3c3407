"""What can go wrong by the caller's hand, as one family of exceptions, and texts that are safe to show."""

from collections.abc import Hashable, Iterable
from importlib import import_module
from typing import Any

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}  # ␀ … ␟ and ␡
_OTHERS = (*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SAFE = dict.fromkeys(_OTHERS, "\ufffd") | {code: text for code, text in _PICTURES.items() if code != 0x0A}


def clean(text: str) -> str:
    """Text from files and other strangers as it may be shown: what controls a terminal is replaced by a picture of it.

    That is every control character but the end of a line, and the marks that turn the direction of writing.
    """
    return text.translate(_SAFE)


class InputError(ValueError):
    """Bad input: the message names the place (state, action, kernel, file line) and the value."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message))


class MissingExtra(ImportError):  # noqa: N818  (reads as the advice it gives)
    """An optional dependency is needed; the message says how to install it."""

    def __init__(self, package: str, extra: str | None = None) -> None:
        cure = f"pip install {package}" if extra is None else f"in a clone of drmdp: {install(extra)}"
        super().__init__(f"{package} is not installed; {cure}")


def install(extra: str) -> str:
    """The command that installs an extra; there is no release, so it works in a clone."""
    return f"pip install '.[{extra}]'"


def imported(module: str, extra: str | None = None) -> Any:
    """An optional module, of an extra or by itself, or an error that says how to get it, or why it refuses (as matplotlib does to an unknown MPLBACKEND)."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(package, extra) from error
    except ValueError as error:
        raise InputError(f"{package} cannot be used: {brief(str(error), 200)}") from None


class Notice(UserWarning):
    """Something to know about what was done, such as what a format leaves out; the command line prints it as a line."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message))


def repeated(names: Iterable[Hashable]) -> Hashable:
    """The first name that was there before; None if all differ."""
    seen: set[Hashable] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def brief(text: str, most: int = 80) -> str:
    """Text on one short line, for messages."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}…"


def described(given: object) -> str:
    """What a thing is, for messages: small ones as they are, arrays by shape, others by type."""
    if given is None or isinstance(given, str | int | float):
        return shown(given)
    shape = getattr(given, "shape", None)
    kind = type(given).__name__
    return f"{kind} of shape {shape}" if isinstance(shape, tuple) else f"a {kind}"


def shown(given: object) -> str:
    """`repr` on one short line, for messages; some objects cannot even be printed."""
    try:
        return brief(repr(given))
    except Exception:
        return f"<{type(given).__name__}>"
