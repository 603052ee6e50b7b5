"""Programs of a desktop that the driver lists among the processes on a GPU."""

from __future__ import annotations

DESKTOP_PROGRAMS = ("Xorg", "X", "Xwayland", "gnome-shell", "kwin_wayland", "plasmashell")
"""They draw, and have no CUDA context."""
