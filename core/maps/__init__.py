"""Maps: 2-D pictures of response vectors, of a whole dataset or of one prompt.

`build` makes one, `cached` makes it once and keeps it, `existing` only looks; `dots` turns it into what a figure
draws, `place` and
`extend` add new responses without moving the old ones. The centre of a map is (0, 0) and the root mean
square distance of its different texts from there is 1; a map has no other unit.
"""

from core.maps.build import Map, build, rows
from core.maps.dots import dots
from core.maps.files import cached, existing, load, load_shipped, save, write_shipped
from core.maps.place import extend, place

__all__ = [
    "Map",
    "build",
    "cached",
    "dots",
    "existing",
    "extend",
    "load",
    "load_shipped",
    "place",
    "rows",
    "save",
    "write_shipped",
]
