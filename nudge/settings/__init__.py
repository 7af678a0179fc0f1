"""Settings: `table` lists them, `config` reads their values, `switches` says where recording is turned off."""
