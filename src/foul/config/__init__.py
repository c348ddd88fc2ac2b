"""The configuration of a run: schema, files, overrides."""

from foul.config.load import load_config, shipped_configs
from foul.config.schema import Config

__all__ = ["Config", "load_config", "shipped_configs"]
