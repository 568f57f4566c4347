"""Six roles run a technology organisation through a launch, a shortage, a silent drift or a change of law."""
