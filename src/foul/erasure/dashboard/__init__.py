"""A page to look at: federations, requests, receipts, curves; read only, but for filing."""

from foul.erasure.dashboard.server import Dashboard, open_dashboard

__all__ = ["Dashboard", "open_dashboard"]
