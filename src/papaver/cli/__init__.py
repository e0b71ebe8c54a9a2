"""The command line `papaver`. Its names, flags, JSON keys and exit statuses are a contract with scripts."""
