"""The rules of the offline repairer: what to try for which cause, over parameters and over source."""
