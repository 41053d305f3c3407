"""Pictures of reports that are put on axes, but not laid out and written, which takes most of the
time of a page.
"""

from drmdp.plot._axes import FREE


def sketch(picture, prefix, words):
    """An empty <svg> in the place of `drmdp.report.page.draw`."""
    from matplotlib.figure import Figure

    picture(ax=Figure(label=FREE).subplots())
    return f'<svg id="{prefix}-figure_1" role="img" aria-label="{words}"></svg>'
