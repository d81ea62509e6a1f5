"""The subcommands of ``npbench``, each imported when it is used."""
