"""dataflow"""
