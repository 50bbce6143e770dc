"""What each product is: ``profiles.toml`` read into frozen profiles."""

from emu.soc.profile import SocProfile, known_socs, profile

__all__ = ["SocProfile", "known_socs", "profile"]
