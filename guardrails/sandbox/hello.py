"""Say over the channel that the sandbox stands."""

import os

os.write(3, b"sandboxed")
