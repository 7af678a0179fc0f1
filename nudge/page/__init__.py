"""The page of `nudge open`: who may look at it (sign_in), its files (files, static/), the stream of what happens
(stream), and what only it asks for (ops)."""
