"""RouteSensor: three joins and a negation over random edges, beside its peers.

Which sensors watch a switch on a route that does not require them? Four relations, filled edge by
edge in random order: an engine is asked to keep the answer right after every single one.
"""

VOCABULARY = "http://www.semanticweb.org/ontologies/2015/trainbenchmark#"

QUERY = f"""PREFIX : <{VOCABULARY}>
SELECT ?route ?sensor ?swP ?sw WHERE {{
  ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor .
  FILTER NOT EXISTS {{ ?route :requires ?sensor }}
}}"""

RELATIONS = ("follows", "target", "monitoredBy", "requires")
