"""One self-contained HTML page about a solution: it reads results and never solves.

`facts` gathers what is said, `svg` draws, `page.html` is the frame. The page loads nothing and runs nothing, and its policy for the browser forbids
both; every name in it is data and escaped.
"""

from drmdp.report.page import write

__all__ = ["write"]
