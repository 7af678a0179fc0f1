"""What clients run at their events: one command for every event and client. Thin: it is paid for at each tool call."""
