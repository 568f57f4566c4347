"""The ASGI application that openenv.yaml names. Importing it builds the application: that is its one purpose."""

from oomrl.arenas.faces.openenv_server import make_app

app = make_app("committee")
