"""Arguments that several verbs share."""


def split_config(config: str | None, overrides: list[str] | None) -> tuple[str | None, list[str]]:
    """The configuration's name and the overrides; `key=value` in its place is an override."""
    texts = list(overrides or [])
    if config is not None and "=" in config:
        return None, [config, *texts]
    return config, texts
