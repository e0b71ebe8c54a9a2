"""Where the two parties keep what they know: `memory` for tests, `sqlite` for a Company and a Personal Agent."""
