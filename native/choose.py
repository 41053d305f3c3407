"""The compiled routines of a wheel for x86-64: those for the highest level that the processor has.

`DRMDP_LEVEL`, an environment variable, names another one, `x86-64-v2` or `x86-64-v3`. Both give the
same bits.
"""

import os
from importlib import import_module

_level = os.environ.get("DRMDP_LEVEL", "host").replace("all", "host")  # `all` is for who builds
_modules = {"x86-64-v3": "drmdp._native_v3", "x86-64-v2": "drmdp._native_v2"}
if _level not in {"host", *_modules}:
    raise ImportError(f"DRMDP_LEVEL: expected host, {' or '.join(_modules)}, got {_level!r}")
try:
    _found = import_module(_modules["x86-64-v3" if _level == "host" else _level])
except ImportError:  # the processor does not have this level
    if _level != "host":
        raise
    _found = import_module(_modules["x86-64-v2"])
globals().update({name: value for name, value in vars(_found).items() if not name.startswith("_")})
