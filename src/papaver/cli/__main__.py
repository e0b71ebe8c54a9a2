"""`python -m papaver.cli`: the command line without its installed script."""

from papaver.cli.main import main

if __name__ == "__main__":
    main()
