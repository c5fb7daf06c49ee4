"""Functions beyond those of SPARQL, known by their IRIs: XPath's math:, GeoSPARQL's geof:."""
