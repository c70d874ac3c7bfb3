"""Studies: many simulations described by one file, stored one by one, and resumed after anything."""
