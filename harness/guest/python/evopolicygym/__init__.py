"""EvoPolicyGym, as a Policy Program sees it: import names from ``evopolicygym.policy``."""
