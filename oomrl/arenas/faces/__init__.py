"""The same engine for other callers: Gymnasium-style code and OpenEnv servers and clients.

Plain Python needs no face: `find(name).make()` has reset, step, state and grade.
"""
