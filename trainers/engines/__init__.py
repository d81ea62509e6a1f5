"""Other people's trainers as engines for our methods: adapters, thin, pinned and tested."""
