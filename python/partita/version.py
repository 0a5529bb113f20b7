"""The version of this package, which is that of the command it was made with."""

VERSION = "0.2.0"
