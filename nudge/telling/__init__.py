"""What an agent is told, and when. `prompt` decides which note a prompt is about; `common_words` says what a shared
word is worth."""
