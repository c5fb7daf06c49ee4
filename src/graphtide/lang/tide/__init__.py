"""The .tide language: programs of queries, events, patterns, rules, goals and fixes."""
