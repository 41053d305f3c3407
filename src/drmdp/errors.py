"""User errors, and texts that are safe to show."""

from collections.abc import Hashable, Iterable
from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from typing import Any

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\u2421"}  # ␀ … ␟ and ␡
_OTHERS = (*range(0x80, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SAFE = dict.fromkeys(_OTHERS, "\ufffd") | _PICTURES
del _SAFE[0x0A]
FAR = 1000
"""Names, and letters of one, among which a slip is looked for."""


def clean(text: str) -> str:
    """Replace what controls a terminal by a picture of it.

    That is every control character but the end of a line, and the marks that turn the direction of
    writing.
    """
    return text.translate(_SAFE)


class InputError(ValueError):
    """Bad input: the message names the place (state, action, kernel, file line) and the value."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message))


def unexpected(name: str, expected: str, given: object) -> InputError:
    """The error of an argument that is not what was expected."""
    return InputError(f"{name}: expected {expected}, got {shown(given)}")


class MissingExtra(ImportError):  # noqa: N818  (reads as the advice it gives)
    """An optional dependency is needed; the message says how to install it."""

    def __init__(self, package: str, extra: str | None = None) -> None:
        cure = f"in a clone of drmdp: {install(extra)}" if extra else f"pip install {package}"
        super().__init__(f"{package} is not installed; {cure}")


def install(extra: str) -> str:
    """The command that installs an extra; there is no release, so it works in a clone."""
    return f"pip install '.[{extra}]'"


def imported(module: str, extra: str | None = None) -> Any:
    """Import an optional module; the error says how to get it, or why it refuses (as matplotlib
    does to an unknown MPLBACKEND).
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(package, extra) from error
    except ValueError as error:
        raise InputError(f"{package} cannot be used: {brief(str(error), 200)}") from None


class Notice(UserWarning):
    """A warning, such as of what a format leaves out; the command line prints it as a line."""

    def __init__(self, message: str) -> None:
        super().__init__(clean(message))


def one_of(name: str, given: Any, known: Iterable[str]) -> None:
    """Refuse what is none of some texts."""
    *first, last = map(repr, known)
    if not isinstance(given, str) or repr(given) not in (*first, last):
        raise InputError(f"{name} is {', '.join(first)} or {last}, got {shown(given)}")


def refuse_given(options: dict[str, Any], rule: str) -> None:
    """Refuse options that do not apply, where one was given."""
    for name, given in options.items():
        if given is not None:
            raise InputError(f"{name}: {rule}")


def first_place(flags: Any) -> tuple[int, ...]:
    """Place of the first flag of an array (n, …) that is set; () if none is."""
    return tuple(int(places[0]) for places in flags.nonzero()) if flags.any() else ()


def meant(name: object, known: Iterable[object]) -> str:
    """The name that is nearest to an unknown one, in words; nothing if none is near."""
    if not isinstance(name, str) or len(name) > FAR:
        return ""
    texts = (each for each in islice(known, FAR) if isinstance(each, str))
    names = {text.casefold(): text for text in texts}
    near = get_close_matches(name.casefold(), names, 1)
    return f" (did you mean {shown(names[near[0]])}?)" if near else ""


def repeated(names: Iterable[Hashable]) -> Hashable:
    """The first name that occurs twice; None if all differ."""
    known: set[Hashable] = set()
    for name in names:
        if name in known:
            return name
        known.add(name)
    return None


def brief(text: str, most: int = 80) -> str:
    """Text on one short line, for messages."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}…"


def described(given: object) -> str:
    """A value in messages: small ones as they are, arrays by shape, others by type."""
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
