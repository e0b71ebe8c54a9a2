"""The main job on one machine: a shop, a Personal Agent, and the steps between them, each verified."""
