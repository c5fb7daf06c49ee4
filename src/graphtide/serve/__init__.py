"""The server: SPARQL endpoint, subscriptions, changes and the page, over HTTP."""
