"""Reports on one problem: theory and an exact run side by side, on a screen and on a page."""
