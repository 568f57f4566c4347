"""The ASGI application that openenv.yaml names. Importing this module builds it: its one purpose."""

from oomrl.arenas.faces.openenv_server import make_app

app = make_app("research")
