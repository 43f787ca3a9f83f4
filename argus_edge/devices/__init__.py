"""Inventory, profiles, the transport seam (local, ssh), probing, deployment."""
