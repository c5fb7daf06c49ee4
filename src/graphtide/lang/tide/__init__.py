"""The .tide language: queries, events, patterns, rules, goals and fixes in one program."""
