"""The strategy worker: the only place where strategy code runs, and the frames by which it is spoken to."""
