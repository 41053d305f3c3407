"""Self-contained HTML pages about solutions and plans: they read results, and `rivals` alone
computes what these are compared with.

`facts` and `plan` gather what is said, `decision` puts policies into sentences, `page` draws,
`frame.html` is the frame. A page loads nothing and runs nothing, and its policy for the browser
forbids both; every name in it is data and escaped.
"""

from drmdp.report.page import write
from drmdp.report.plan import write_plan

__all__ = ["write", "write_plan"]
